"""Where releases go: a Hub, the store of a local Hub, or a git repository."""

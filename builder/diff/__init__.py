"""What changed between two releases: the document, its renderers, and what a card and a changelog say of it."""

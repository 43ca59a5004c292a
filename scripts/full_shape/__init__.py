"""A made-up benchmark of ViDoRe v3's real size: what scripts/make_world writes."""

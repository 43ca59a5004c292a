"""Jinja templates and verbatim parts of the dataset card (package data)."""

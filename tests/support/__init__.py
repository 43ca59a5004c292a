"""Shared material of the tests: small worlds made by hand."""

"""The proofs of a release tree, one module a family, each proof a pure function registered under its id."""

"""What a release contains: upstream data and provenance become tables, proofs, a card: a release tree on disk.

May import `provenance`; knows nothing of `releases`.
"""

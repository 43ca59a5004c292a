"""Every pinned release still is what the ledger says: at the level of the ledger, of the content, of a load."""

"""The ledger of what sources state, its arbitration, and the reading of answers against it."""

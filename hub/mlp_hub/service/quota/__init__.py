"""Quota, held and free: the ledger and what is derived from it."""

"""Repositories of amounts: the ledger, usage, caps of members, booked windows and drained nodes."""

"""Accounting: the roll-up of the ledger, its answers, reports and prices."""

"""Accounting of held and used amounts: days, splits and prices."""

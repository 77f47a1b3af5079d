"""Tenants, their members and accounts, and what is kept for them."""

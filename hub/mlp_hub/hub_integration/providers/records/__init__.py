"""Rows in the hub's database about logins with a provider."""

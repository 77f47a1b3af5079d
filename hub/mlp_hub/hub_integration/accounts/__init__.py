"""Accounts of the hub: passwords, logins, and the ends of both."""

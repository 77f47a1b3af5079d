"""Accounts on the wire: people, their sessions, and people brought in from a file."""

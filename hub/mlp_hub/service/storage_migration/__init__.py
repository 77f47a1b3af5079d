"""Moves of tenants' files between grades of isolation, and mounts that nobody uses."""

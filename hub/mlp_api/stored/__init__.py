"""Stored objects on the wire: datasets, environments, models, secrets and files."""

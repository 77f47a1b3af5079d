"""Repositories of stored objects that users own in a tenant, datasets and models among them, and of apps."""

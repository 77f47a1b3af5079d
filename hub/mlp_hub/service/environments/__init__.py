"""Environments of tenants: their use cases, and the worker that makes, shares and removes their files."""

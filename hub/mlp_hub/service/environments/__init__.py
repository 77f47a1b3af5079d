"""Environments of tenants: what people do with them, and the worker that has them made, shares their files, and removes them."""

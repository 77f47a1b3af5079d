"""Secrets that tenants and people keep with the hub: sealed at once, opened only where they are used, never shown again."""

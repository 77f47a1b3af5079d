"""Tenants and their users: settings, previews of changes, sign-ups, removal."""

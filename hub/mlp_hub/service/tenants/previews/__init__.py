"""Previews of changes of a tenant, before they are saved."""

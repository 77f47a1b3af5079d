"""Repositories of tenants, of their members, and of what a tenant or a person has set up."""

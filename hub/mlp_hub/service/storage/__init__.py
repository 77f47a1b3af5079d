"""Stored objects of people, and their use of their tenants' quotas."""

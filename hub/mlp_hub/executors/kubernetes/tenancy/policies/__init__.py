"""Admission policies of tenants' namespaces."""

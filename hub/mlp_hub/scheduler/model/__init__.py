"""Workloads, nodes and tenants as the scheduler sees them; decisions; resource amounts."""

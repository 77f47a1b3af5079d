"""Pending workloads in their queues and equivalence classes; admitted workloads."""

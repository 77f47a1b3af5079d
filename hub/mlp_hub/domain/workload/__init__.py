"""Requests for capacity, of every kind of workload."""

"""Tests of a cluster with the hub's own temporary objects and namespaces; for the doctor."""

"""Nodes and attempts that are only played; for tests, what-if and scenarios."""

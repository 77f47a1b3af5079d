"""Nodes: their list, their use, and those out of service."""

"""Nodes: what is there, who uses what of them, and which were taken out of service."""

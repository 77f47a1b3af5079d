"""Nodes of a cluster, as the scheduler's core sees them; updates cost in proportion to the changes."""

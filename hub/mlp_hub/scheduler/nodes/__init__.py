"""Nodes, what is free on them, filtering and scoring, placement of gangs."""

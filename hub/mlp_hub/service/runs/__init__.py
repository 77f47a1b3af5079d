"""Runs: what they were, what became of them, and comparing them."""

"""Runs: their data, their results, and comparisons."""

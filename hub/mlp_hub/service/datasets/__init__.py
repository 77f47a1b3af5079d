"""Datasets: made, written, listed, deleted."""

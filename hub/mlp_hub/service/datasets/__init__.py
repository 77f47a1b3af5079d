"""Datasets: made, copied from where they are, written, measured, listed, deleted."""

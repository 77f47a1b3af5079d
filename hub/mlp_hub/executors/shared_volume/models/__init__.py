"""Formats of models, found by a separate process."""

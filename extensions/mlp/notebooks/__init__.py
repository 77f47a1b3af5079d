"""Notebooks as programs of jobs."""

"""Metrics of jobs: taken in, kept, spooled."""

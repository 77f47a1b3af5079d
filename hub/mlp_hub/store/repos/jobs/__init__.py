"""Repositories of jobs, and of what belongs to a job: its timeline, points, runs and sweeps."""

"""Objects of Python for jobs, sweeps and runs."""

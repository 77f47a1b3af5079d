"""Routes of jobs, with their runs, sweeps, metrics, streams and runtimes."""

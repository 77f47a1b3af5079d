"""Jobs, their runs and sweeps."""

"""Jobs and sweeps in a cell or on a terminal while they run."""

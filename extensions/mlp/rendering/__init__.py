"""Facts of jobs, sweeps and teams as words, tables and pictures: pure, without a request."""

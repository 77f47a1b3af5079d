"""Programs of ranks: runtimes, environments of packages and images."""

"""Which workloads start: the loop around the scheduler's core, and how its decisions are stored."""

"""Whether a workload fits: now (quota and nodes), and ever."""

"""Expected starts of workloads and what would help, within a budget for costly answers."""

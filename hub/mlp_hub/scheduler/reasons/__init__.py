"""Why a workload waits, from the numbers that decided it."""

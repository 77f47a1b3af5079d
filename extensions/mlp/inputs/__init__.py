"""Parameters, variables and datasets of a program inside a job."""

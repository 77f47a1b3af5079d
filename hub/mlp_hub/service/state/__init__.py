"""The one place that changes jobs, what it tells others, and who leads."""

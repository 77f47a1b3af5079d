"""Lines of logs, and what they concern: the request, its user, its job."""

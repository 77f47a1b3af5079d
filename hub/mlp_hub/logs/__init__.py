"""Lines of logs, and their concern: the request, its user, its job."""

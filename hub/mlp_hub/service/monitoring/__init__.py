"""Monitoring: metrics of the platform for Prometheus, from one table."""

"""Metric points of jobs, handed on to programs of the site: OTLP and MLflow."""

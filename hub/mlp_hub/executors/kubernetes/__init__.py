"""Runs attempts as pods of a Kubernetes cluster."""

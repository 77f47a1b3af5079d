"""A real Kubernetes on one machine, for tests and for trying out; no part of the wheel. See docs/how-to/cluster.md."""

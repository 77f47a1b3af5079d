"""Workspace whose files are mounted where the service runs: this machine's disk, or a volume that cluster and service share."""

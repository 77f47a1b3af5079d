"""Sandboxes on this machine, supervised by shims."""

"""Use cases: submit, admit, reconcile, resource requests, metrics."""

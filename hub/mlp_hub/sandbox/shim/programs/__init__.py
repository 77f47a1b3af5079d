"""Programs that run inside a sandbox, as its tenant. Each is a file of its own, which is copied or started by its path."""

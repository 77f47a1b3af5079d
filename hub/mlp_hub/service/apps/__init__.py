"""Apps: models and commands that answer requests, as replicas that are jobs of the engine."""

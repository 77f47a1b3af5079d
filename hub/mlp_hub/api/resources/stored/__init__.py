"""Routes of stored objects: datasets, environments, models and secrets."""

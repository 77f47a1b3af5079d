"""Alembic's environment and revisions; run through `mlp_hub.store.migrate`."""

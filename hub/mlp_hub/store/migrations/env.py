"""Alembic runs this file; the connection comes from `mlp_hub.store.migrate`."""

from __future__ import annotations

from alembic import context

from mlp_hub.store.tables import metadata

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    render_as_batch=connection.dialect.name == "sqlite",  # SQLite alters a table by copying it
    compare_type=True,
    transaction_per_migration=False,
)
context.run_migrations()

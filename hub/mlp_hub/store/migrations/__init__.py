"""Alembic's environment and revisions: the bridge for databases of earlier versions, run through `mlp_hub.store.migrate`.

New databases get their tables from `mlp_hub.store.tables` in one step, and run no revision.
"""

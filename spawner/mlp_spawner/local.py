"""Notebook servers in sandboxes on the hub's machine, inside their tenant's quota."""

from __future__ import annotations

from mlp_spawner.quota.mixin import QuotaMixin
from mlp_spawner.sandboxed import SandboxSpawner


class LocalSpawner(QuotaMixin, SandboxSpawner):
    """The spawner of a hub on one machine."""

"""Notebook servers that are pods of a cluster, inside their tenant's quota."""

from __future__ import annotations

from mlp_spawner.kubernetes.pod_servers import PodServers
from mlp_spawner.quota.mixin import QuotaMixin


class PodSpawner(QuotaMixin, PodServers):
    """The spawner of a hub whose users work in a cluster."""

    gives_gpus = True

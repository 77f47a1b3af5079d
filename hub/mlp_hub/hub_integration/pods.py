"""The embedded hub's settings where notebook servers are pods."""

from __future__ import annotations

from functools import partial
from typing import Any

from mlp_hub import in_cluster
from mlp_hub.api.edge.call import API_BASES
from mlp_hub.settings import Settings


def configure_pods(c: Any, settings: Settings) -> Any:
    """Set what a pod needs to know; return the section of the spawner."""
    installation = in_cluster.installation_of(settings)
    c.JupyterHub.spawner_class = "mlp_spawner.pods.PodSpawner"
    spawner = c.PodSpawner
    spawner.installation = installation
    spawner.connect = partial(in_cluster.connect, settings)
    spawner.hub_connect_url = in_cluster.hub_url(settings)
    spawner.api_url = in_cluster.service_url(settings) + API_BASES[0]
    spawner.data_url = in_cluster.data_url(settings)
    spawner.state_dir = str(settings.servers_run_dir)
    return spawner

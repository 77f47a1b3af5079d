"""Pods of a cluster: the executor, and addresses at which pods reach this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlp_hub.in_cluster import (
    connect,
    data_listens,
    data_url,
    hub_listens,
    installation_of,
    service_listens,
    service_url,
)

if TYPE_CHECKING:
    from mlp_hub.executors.base import Executor
    from mlp_hub.settings import Settings

__all__ = ["data_listens", "data_url", "hub_listens", "make", "service_listens", "service_url"]


async def make(settings: Settings) -> Executor:
    """Make the executor of a cluster."""
    from mlp_hub.executors.kubernetes.composed import ClusterExecutor  # noqa: PLC0415 - the service alone needs it

    return await ClusterExecutor.make(
        await connect(settings), installation_of(settings), settings.secret_if_made("secrets_key")
    )

"""Nodes that are simulated: the executor, with nodes of a scenario file; notebook servers run in sandboxes here."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mlp_hub.backends.local import (
    data_listens,
    data_url,
    directories_of,
    hub_listens,
    service_listens,
    service_url,
)
from mlp_hub.settings import Settings, SettingsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mlp_hub.executors.base import Executor
    from mlp_hub.executors.nodes import NodeInfo

__all__ = ["data_listens", "data_url", "hub_listens", "make", "service_listens", "service_url"]


async def make(settings: Settings) -> Executor:
    """Make the simulated executor."""
    from mlp_hub.executors.simulated.executor import SimulatedExecutor  # noqa: PLC0415 - the service alone needs it

    journal = settings.jobs_run_dir / "simulated.journal"
    return SimulatedExecutor(simulated_nodes(settings), time.time, directories_of(settings), journal=journal)


def simulated_nodes(settings: Settings) -> Sequence[NodeInfo]:
    """Read the nodes of the simulated executor; raise `SettingsError` naming every fault of their file."""
    from mlp_hub.domain.resources import MILLI, Resources  # noqa: PLC0415
    from mlp_hub.executors.nodes import NodeInfo, Taint  # noqa: PLC0415

    if settings.simulated_nodes is None:
        amount = Resources(cpu=16 * MILLI, ram=65_536)
        return [NodeInfo(f"simulated-{n}", amount, amount) for n in range(1, 5)]
    from mlp_hub.simulate.errors import ScenarioError  # noqa: PLC0415
    from mlp_hub.simulate.scenario_reader import read_value  # noqa: PLC0415
    from mlp_hub.simulate.text import parse  # noqa: PLC0415

    try:
        given = parse(settings.simulated_nodes.read_text())
        if isinstance(given, dict):  # of a whole scenario, what is not about nodes does not count
            given = {k: v for k, v in given.items() if k in ("version", "nodes", "flavors")}
            given = {"version": 1, **given, "tenants": [{"name": "default"}], "jobs": []}
        nodes = read_value(given).nodes
    except (OSError, ScenarioError) as error:
        raise SettingsError(f"MLP_SIMULATED_NODES: {settings.simulated_nodes}: {error}") from error
    if not nodes:
        raise SettingsError(
            f"MLP_SIMULATED_NODES: {settings.simulated_nodes} has no nodes; list some under `nodes`"
        )
    return [
        NodeInfo(n.name, n.capacity, n.capacity, n.gpu_kind, n.labels, tuple(map(Taint.parse, n.taints)))
        for n in nodes
    ]

"""Sandboxes on this machine: the executor, its node, and sockets at which ranks reach the hub."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from mlp_hub.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mlp_hub.executors.base import Executor
    from mlp_hub.executors.nodes import NodeInfo
    from mlp_hub.executors.shared_volume.directories import Directories


async def make(settings: Settings) -> Executor:
    """Make the executor of this machine."""
    from mlp_hub.executors.local.executor import LocalExecutor  # noqa: PLC0415 - the service alone needs it
    from mlp_hub.executors.local.package_index import configs_of, index_of  # noqa: PLC0415
    from mlp_hub.sandbox import Bind, capabilities, remove_forgotten  # noqa: PLC0415

    remove_forgotten(capabilities().bases.values())
    sockets = str(settings.tenant_dir)
    return LocalExecutor(
        settings.jobs_run_dir,
        directories_of(settings),
        nodes=nodes_of(settings),
        binds=[Bind(sockets, sockets, False)],
        servers_root=settings.servers_run_dir,
        platform=(settings.home, settings.files_dir, settings.run_dir),
        index=index_of(settings.package_index, os.environ, configs_of(os.environ)),
        environments_at_once=settings.environments_at_once,
        environment_step_s=settings.environment_step_minutes * 60,
        gpu_jobs=settings.dcgm_job_dir,
    )


def nodes_of(settings: Settings) -> Sequence[NodeInfo]:
    """Return this machine as a node; settings replace the values that are found."""
    from mlp_hub.domain.resources import milli  # noqa: PLC0415
    from mlp_hub.executors.local.node import local_node  # noqa: PLC0415

    node = local_node(
        settings.node_name or None,
        cpu_overcommit=settings.node_cpu_overcommit,
        reserve_mib=settings.node_ram_reserve,
        disk=str(settings.home),
    )
    have, given, kind = node.capacity, node.allocatable, node.gpu_kind
    if settings.node_cpu is not None:
        cpu = milli(settings.node_cpu)
        have, given = have.but(cpu=cpu), given.but(cpu=int(cpu * settings.node_cpu_overcommit))
    if settings.node_ram is not None:
        have = have.but(ram=settings.node_ram)
        given = given.but(ram=max(0, settings.node_ram - settings.node_ram_reserve))
    if settings.node_gpus is not None or settings.node_gpu_kind:
        kind = settings.node_gpu_kind or kind
        gpu = have.gpu if settings.node_gpus is None else milli(settings.node_gpus)
        kinds = ((kind, gpu),) if kind and gpu else ()
        have, given = replace(have, gpu=gpu, kinds=kinds), replace(given, gpu=gpu, kinds=kinds)
    return [replace(node, capacity=have, allocatable=given, gpu_kind=kind)]


def directories_of(settings: Settings) -> Directories:
    """Tell the executor where files are."""
    from mlp_hub.executors.shared_volume.directories import Directories  # noqa: PLC0415
    from mlp_hub.isolation import roots_of  # noqa: PLC0415

    roots = roots_of(settings)
    return Directories(homes=settings.homes_dir, jobs=settings.jobs_dir, own_roots=roots)


def service_url(settings: Settings) -> str:
    """Return the URL of the service as sandboxes have it."""
    return f"http+unix://{quote(str(settings.tenant_service_socket), safe='')}"


def data_url(_settings: Settings) -> str:
    """Return that datasets' files are beside the service."""
    return ""


def service_listens(settings: Settings) -> tuple[str, int] | None:
    """Return where the service listens for sandboxes on TCP, if a setting says so."""
    return settings.listens[1]


def hub_listens(settings: Settings) -> tuple[str, int] | None:
    """Return where the hub listens for servers on TCP, if a setting says so."""
    return settings.hub_listens


def data_listens(settings: Settings) -> tuple[str, int] | None:
    """Return where datasets' files are served on TCP, if a setting says so."""
    return settings.data_listens

"""Installation in a cluster of a hub with these settings, and its addresses for pods."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kubernetes_asyncio.config import ConfigException

from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.settings import Settings, SettingsError
from mlp_hub.settings.values import address
from mlp_hub.unix_sockets import url_of

Address = tuple[str, int]
_WHICH = "name a kubeconfig with MLP_KUBERNETES_CONFIG or KUBECONFIG"


def installation_of(settings: Settings) -> Installation:
    """Tell what the hub has in the cluster; raise `SettingsError` where it cannot be told."""
    files = settings.files_dir
    return Installation(
        root=files,
        directories=Directories(homes=settings.homes_dir, jobs=settings.jobs_dir),
        volume=settings.volume,
        image=settings.kubernetes_image,
        service=service_address(settings),
        cpu_overcommit=settings.node_cpu_overcommit,
        hub=hub_address(settings),
        data=data_address(settings),
        name=settings.kubernetes_name,
        prewarmed=settings.kubernetes_prewarmed,
        prewarmed_disk=settings.kubernetes_prewarmed_disk,
        node_lost_s=settings.kubernetes_node_lost_s,
        start_slack_s=settings.kubernetes_start_slack_s,
        notebook_tmp=settings.notebook_tmp,
        pull_policy=settings.kubernetes_pull_policy,
        pull_secrets=settings.kubernetes_pull_secrets,
        tolerations=settings.tolerations,
        dns=settings.kubernetes_dns,
        open=settings.kubernetes_open,
        user_prefix=settings.kubernetes_user_prefix,
        identities=settings.kubernetes_identities,
        gpu_metrics=settings.kubernetes_gpu_metrics,
        gpu_metrics_job=settings.kubernetes_gpu_metrics_job,
        namespaces=settings.kubernetes_namespaces,
        home=settings.kubernetes_pod.partition("/")[0] if settings.kubernetes_namespaces else "",
        capacity=settings.capacity,
    )


async def connect(settings: Settings) -> KubernetesClient:
    """Return the API of the cluster that the settings name, without asking it anything; raise `SettingsError`."""
    if settings.kubernetes_config is not None:
        # kubernetes_asyncio prints what is wrong with a file, or falls over it
        _read(settings.kubernetes_config)
    try:
        made = await KubernetesClient.connect(settings.kubernetes_config, settings.kubernetes_context or None)
    except (ConfigException, OSError, ValueError) as error:
        raise SettingsError(f"the cluster is not known: {error}; {_WHICH}") from error
    made.namespaces = settings.kubernetes_namespaces
    return made


def address_of(settings: Settings) -> str:
    """Return the host at which pods reach this machine."""
    if settings.kubernetes_address:
        return settings.kubernetes_address
    host = _api_host(settings)
    try:
        # no packet is sent: the system is only asked which of its addresses it would send from
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((host, 6443))
            return str(probe.getsockname()[0])
    except OSError as error:
        raise SettingsError(
            f"there is no way to the cluster's API at {host}: {error}; say with MLP_KUBERNETES_ADDRESS at which host pods "
            "reach this machine"
        ) from error


def hub_listens(settings: Settings) -> Address:
    """Return where the hub listens for pods."""
    return settings.hub_listens or (address_of(settings), hub_port(settings))


def hub_port(settings: Settings) -> int:
    """Return the port at which the hub listens for pods."""
    return settings.hub_listens[1] if settings.hub_listens else settings.port + 1


def service_listens(settings: Settings) -> Address:
    """Return where the service listens for pods."""
    return settings.listens[1] or (address_of(settings), service_port(settings))


def service_port(settings: Settings) -> int:
    """Return the port at which the service listens for pods."""
    return settings.listens[1][1] if settings.listens[1] else settings.port + 2


def data_listens(settings: Settings) -> Address:
    """Return where files of datasets are served to pods."""
    return settings.data_listens or (address_of(settings), data_port(settings))


def data_port(settings: Settings) -> int:
    """Return the port at which files of datasets are served to pods."""
    return settings.data_listens[1] if settings.data_listens else settings.port + 3


def hub_address(settings: Settings) -> Address:
    """Return the host and port at which pods reach the hub."""
    given = address("MLP_KUBERNETES_HUB", settings.kubernetes_hub)
    return given or (address_of(settings), hub_port(settings))


def service_address(settings: Settings) -> Address:
    """Return the host and port at which pods reach the service."""
    given = address("MLP_KUBERNETES_SERVICE", settings.kubernetes_service)
    return given or (address_of(settings), service_port(settings))


def data_address(settings: Settings) -> Address:
    """Return the host and port at which pods reach the files of datasets."""
    given = address("MLP_KUBERNETES_DATA", settings.kubernetes_data)
    return given or (address_of(settings), data_port(settings))


def data_url(settings: Settings) -> str:
    """Return the URL of the files of datasets as pods have it."""
    return f"{url_of(data_address(settings))}{settings.base}/data"


def hub_url(settings: Settings) -> str:
    """Return the hub's URL as pods have it."""
    return url_of(hub_address(settings))


def service_url(settings: Settings) -> str:
    """Return the service's URL as pods have it."""
    return url_of(service_address(settings))


def _api_host(settings: Settings) -> str:
    path = settings.kubernetes_config
    if path is None:
        return _in_pod()
    found = _read(path)
    context = settings.kubernetes_context or found.get("current-context", "")
    cluster = next((c["context"]["cluster"] for c in found.get("contexts", ()) if c["name"] == context), None)
    server = next((c["cluster"]["server"] for c in found.get("clusters", ()) if c["name"] == cluster), "")
    host = urlsplit(server).hostname
    if not host:
        known = ", ".join(c["name"] for c in found.get("contexts", ())) or "none"
        raise SettingsError(
            f"{path} has no cluster for the context {context!r}; its contexts are: {known}. Choose with MLP_KUBERNETES_CONTEXT"
        )
    return host


def _in_pod() -> str:
    host = os.environ.get("KUBERNETES_SERVICE_HOST")
    if not host:
        raise SettingsError(f"which cluster is not known: {_WHICH}")
    return host


def _read(path: Path) -> dict[str, Any]:
    import yaml  # noqa: PLC0415 - half of those who ask need no file

    try:
        found = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SettingsError(f"the kubeconfig {path} cannot be read: {error}; {_WHICH}") from error
    if not isinstance(found, dict):
        raise SettingsError(f"{path} is no kubeconfig; {_WHICH}")
    return found

"""Checks of the settings that say how a hub uses a cluster."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from mlp_hub.settings.executor_kinds import ConfigFile
from mlp_hub.settings.values import SettingsError, variable_of

LONGEST_NAME = 20
"""Given: characters of a name, of the 63 that a namespace's may have: the rest is the tenant's."""
_TOLERATES = frozenset({"key", "operator", "value", "effect", "tolerationSeconds"})
_PART = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_SERVICE = re.compile(f"{_PART}/(https?:)?{_PART}(:[a-z0-9-]{{1,15}})?")
_AMOUNT = re.compile(r"[0-9]+(\.[0-9]+)?(m|[kMGTP]i?)?")
_NAME = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")


def check_name(name: str) -> None:
    """Raise `SettingsError` unless names in the cluster may begin so."""
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise SettingsError(
            f"MLP_KUBERNETES_NAME is {name!r}; it must begin with a letter, and have small letters, digits and '-' within, "
            f"{LONGEST_NAME} characters at most"
        )


def check_gpu_metrics(service: str, job: str) -> None:
    """Raise `SettingsError` unless the work of GPUs can be asked for there: nothing but a service's name gets into the path."""
    if service and not _SERVICE.fullmatch(service):
        raise SettingsError(
            f"MLP_KUBERNETES_GPU_METRICS is {service!r}; write NAMESPACE/SERVICE:PORT, as monitoring/prometheus:9090"
        )
    if not job or not job.isascii() or not job.isprintable():
        raise SettingsError(
            f"MLP_KUBERNETES_GPU_METRICS_JOB is {job!r}; write a pattern in printable ASCII, as (nvidia-)?dcgm-exporter"
        )


def config_path(config: ConfigFile, value: str) -> Path:
    """Return the one file that the value of a variable such as KUBECONFIG names."""
    names = [name for name in value.split(os.pathsep) if name]
    if len(names) != 1:
        raise SettingsError(
            f"{config.variable} names {len(names)} files; name the one that the hub is to use with {variable_of(config.setting)}"
        )
    return Path(names[0]).expanduser().absolute()


def tolerations(text: str) -> tuple[Mapping[str, Any], ...]:
    """Read a pod's tolerations."""
    if not text:
        return ()
    import yaml  # noqa: PLC0415 - only where it is used; JSON is YAML too

    right = "it must be a list of tolerations of a pod, such as [{key: gpu, operator: Exists}]"
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SettingsError(f"MLP_KUBERNETES_TOLERATIONS cannot be read: {error}; {right}") from None
    if not isinstance(found, list) or not all(
        isinstance(each, dict) and set(each) <= _TOLERATES for each in found
    ):
        raise SettingsError(f"MLP_KUBERNETES_TOLERATIONS is {text!r}; {right}")
    return tuple(found)


def capacity(text: str) -> Mapping[str, str]:
    """Read the amounts of a node's capacity."""
    if not text:
        return {}
    import yaml  # noqa: PLC0415 - only where it is used; JSON is YAML too

    right = "it must be amounts of a node with cpu and memory, such as {cpu: 64, memory: 256Gi, nvidia.com/gpu: 8}"
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SettingsError(f"MLP_KUBERNETES_CAPACITY cannot be read: {error}; {right}") from None
    if not isinstance(found, dict) or not {"cpu", "memory"} <= found.keys():
        raise SettingsError(f"MLP_KUBERNETES_CAPACITY is {text!r}; {right}")
    amounts = {str(name): str(amount) for name, amount in found.items()}
    if wrong := [f"{name}: {amount}" for name, amount in amounts.items() if not _AMOUNT.fullmatch(amount)]:
        raise SettingsError(f"MLP_KUBERNETES_CAPACITY has {', '.join(wrong)}; {right}")
    return amounts


def check_namespaces(namespaces: Iterable[str], name: str, *, pod: str, capacity: str) -> None:
    """Raise `SettingsError` unless a hub of this name can work in these namespaces alone."""
    given = tuple(namespaces)
    if not given:
        return
    if wrong := [each for each in given if not each.startswith(f"{name}-")]:
        raise SettingsError(
            f"MLP_KUBERNETES_NAMESPACES has {', '.join(wrong)}; the namespace of a team is {name}-TEAM, because MLP_KUBERNETES_NAME is {name}"
        )
    if not pod:
        raise SettingsError(
            "MLP_KUBERNETES_NAMESPACES is for a hub whose parts are pods of the cluster; leave it empty, or install the hub with its chart"
        )
    if not capacity:
        raise SettingsError(
            "MLP_KUBERNETES_CAPACITY is empty; with MLP_KUBERNETES_NAMESPACES the hub cannot read nodes: name what it may give out, such as {cpu: 64, memory: 256Gi}"
        )


def check_networks(setting: str, networks: Iterable[str]) -> None:
    """Raise `SettingsError` unless these are networks, as policies name them."""
    for each in networks:
        try:
            ip_network(each)
        except ValueError as error:
            raise SettingsError(
                f"{setting} has {each!r}: {error}; write networks as 10.20.0.0/16, or 10.0.0.10/32"
            ) from None


def volume(text: str, files: Path) -> Mapping[str, Any]:
    """Read the source of a PersistentVolume; without one it is the directory on this machine."""
    if not text:
        return {"hostPath": {"path": str(files), "type": "Directory"}}
    import yaml  # noqa: PLC0415 - only where it is used; JSON is YAML too

    right = "it must be one source of a PersistentVolume, such as {nfs: {server: HOST, path: /PATH}}"
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SettingsError(f"MLP_KUBERNETES_VOLUME cannot be read: {error}; {right}") from None
    if not isinstance(found, dict) or len(found) != 1 or not isinstance(next(iter(found.values())), dict):
        raise SettingsError(f"MLP_KUBERNETES_VOLUME is {text!r}; {right}")
    return found

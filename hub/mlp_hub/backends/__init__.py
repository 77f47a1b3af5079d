"""Executors as the programs of the hub make them: a module each, by the values of the setting `executor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from mlp_hub.settings import Settings, SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mlp_hub.executors.base import Executor

Address = tuple[str, int]


class Backend(Protocol):
    """Interface of an executor's module. Modules load quickly; `make` loads the rest."""

    async def make(self, settings: Settings, /) -> Executor:
        """Make the executor; raise `SettingsError` if the settings do not suffice."""
        ...

    def service_url(self, settings: Settings, /) -> str:
        """Return the URL of the service as ranks have it."""
        ...

    def data_url(self, settings: Settings, /) -> str:
        """Return the URL of datasets' files as ranks have it; empty where it is beside the service."""
        ...

    def service_listens(self, settings: Settings, /) -> Address | None:
        """Return where the service listens for ranks besides its socket, as (host, port)."""
        ...

    def hub_listens(self, settings: Settings, /) -> Address | None:
        """Return where the hub listens for notebook servers besides its socket, as (host, port)."""
        ...

    def data_listens(self, settings: Settings, /) -> Address | None:
        """Return where datasets' files are served to ranks besides their socket, as (host, port)."""
        ...


def _local() -> Backend:
    from mlp_hub.backends import local  # noqa: PLC0415 - each hub loads its own only

    return local


def _simulated() -> Backend:
    from mlp_hub.backends import simulated  # noqa: PLC0415

    return simulated


def _kubernetes() -> Backend:
    from mlp_hub.backends import kubernetes  # noqa: PLC0415 - loads the cluster's client

    return kubernetes


BACKENDS: Mapping[str, Callable[[], Backend]] = {
    "local": _local,
    "simulated": _simulated,
    "kubernetes": _kubernetes,
}


def backend_of(settings: Settings) -> Backend:
    """Return the executor's module; raise `SettingsError` where there is none of that name."""
    load = BACKENDS.get(settings.executor)
    if load is None:
        known = ", ".join(BACKENDS)
        raise SettingsError(f"MLP_EXECUTOR is {settings.executor!r}; there is no such executor, only {known}")
    return load()

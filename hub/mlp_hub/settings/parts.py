"""Settings that say where the hub's own processes listen and find each other, where they are not of one machine; a part of `Settings`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mlp_hub.settings.state_paths import StatePaths
from mlp_hub.settings.values import SettingsError, address, setting
from mlp_hub.unix_sockets import Place


@dataclass(frozen=True, kw_only=True)
class PartSettings(StatePaths):
    """Settings of the ways between proxy, hub, services and data process; without them each has its sockets."""

    __slots__ = ()  # as of `EdgeSettings`

    hub_listen: str = setting(
        "",
        "HOST:PORT at which the hub listens for the proxy and the service, besides its socket; empty: nowhere. Nobody else may reach it.",
        kind="str",
    )
    hub_listen_tenants: str = setting(
        "",
        "HOST:PORT at which the hub listens for notebook servers that are pods; empty: where they are, `kubernetes_address` "
        "and the port after the public one. For `service_listen_tenants` then the one after that.",
        kind="str",
    )
    hub_address: str = setting(
        "", "HOST:PORT at which the proxy and the service reach the hub; empty: its socket.", kind="str"
    )
    hub_attached: bool = setting(
        False,
        "The hub at `hub_address` is another's, such as a Zero-to-JupyterHub: accounts are its alone, and its proxy leads to the pages.",
        kind="bool",
    )
    service_address: str = setting(
        "",
        "HOST:PORT at which proxy, hub and data process reach the service that leads; empty: its socket.",
        kind="str",
    )
    data_listen: str = setting(
        "",
        "HOST:PORT at which files of datasets are served to the proxy, besides their socket; empty: nowhere. Nobody else may reach it.",
        kind="str",
    )
    data_listen_tenants: str = setting(
        "",
        "HOST:PORT at which files of datasets are served to notebook servers and jobs, besides their socket; empty: nowhere, and where "
        "they are pods, `kubernetes_address` and the third port after the public one.",
        kind="str",
    )
    data_address: str = setting(
        "", "HOST:PORT at which the proxy reaches the files of datasets; empty: their socket.", kind="str"
    )
    proxy_listen: str = setting(
        "",
        "HOST:PORT at which the proxy takes its routes, besides its socket; empty: nowhere. Its token is needed here too.",
        kind="str",
    )
    proxy_address: str = setting(
        "", "HOST:PORT at which hub and service reach that; empty: the proxy's socket.", kind="str"
    )

    @property
    def hub_own_listens(self) -> tuple[str, int] | None:
        """Where the hub listens on TCP for the platform's own processes, as (host, port)."""
        return address("MLP_HUB_LISTEN", self.hub_listen)

    @property
    def data_own_listens(self) -> tuple[str, int] | None:
        """Where the data process listens on TCP for the platform's own processes, as (host, port)."""
        return address("MLP_DATA_LISTEN", self.data_listen)

    @property
    def hub_at(self) -> Place:
        """Where the platform's own processes reach the hub."""
        return _place("MLP_HUB_ADDRESS", self.hub_address, self.hub_socket)

    @property
    def service_at(self) -> Place:
        """Where the platform's own processes reach the service that leads."""
        return _place("MLP_SERVICE_ADDRESS", self.service_address, self.service_socket)

    @property
    def data_at(self) -> Place:
        """Where the platform's own processes reach the data process."""
        return _place("MLP_DATA_ADDRESS", self.data_address, self.data_socket)

    @property
    def proxy_listens(self) -> tuple[str, int] | None:
        """Where the proxy's API listens on TCP, as (host, port)."""
        return address("MLP_PROXY_LISTEN", self.proxy_listen)

    @property
    def proxy_at(self) -> Place:
        """Where the platform's own processes reach the proxy's API."""
        return _place("MLP_PROXY_ADDRESS", self.proxy_address, self.proxy_api_socket)

    @property
    def hub_listens(self) -> tuple[str, int] | None:
        """Where the hub listens on TCP for pods, as (host, port), if that is told."""
        return address("MLP_HUB_LISTEN_TENANTS", self.hub_listen_tenants)

    @property
    def data_listens(self) -> tuple[str, int] | None:
        """Where files of datasets are served on TCP, as (host, port), if that is told."""
        return address("MLP_DATA_LISTEN_TENANTS", self.data_listen_tenants)

    def check_parts(self) -> None:
        """Raise `SettingsError` where an address is none, or where two listeners that differ in trust have one port."""
        _ = self.hub_at, self.service_at, self.data_at, self.proxy_listens, self.proxy_at
        for own, tenants, listens in (
            ("MLP_HUB_LISTEN", "MLP_HUB_LISTEN_TENANTS", (self.hub_own_listens, self.hub_listens)),
            ("MLP_DATA_LISTEN", "MLP_DATA_LISTEN_TENANTS", (self.data_own_listens, self.data_listens)),
        ):
            if None not in listens and listens[0][1] == listens[1][1]:  # type: ignore[index]
                raise SettingsError(
                    f"{own} and {tenants} both name port {listens[0][1]}; give them two, which tell the platform from pods"  # type: ignore[index]
                )


def _place(variable: str, given: str, socket: Path) -> Place:
    return address(variable, given) or socket

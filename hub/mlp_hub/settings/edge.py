"""Settings that say how browsers reach a hub; a part of `Settings`."""

# ruff: noqa: RUF009 - `setting` makes a dataclass field
from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

from mlp_hub.settings.values import SettingsError, networks, setting


@dataclass(frozen=True, kw_only=True)
class EdgeSettings:
    """Settings of the public port: its names, TLS, gateways in front, and the number of its connections."""

    __slots__ = ()  # `Settings` makes them: of two bases that have some no class can be made

    allowed_hosts: tuple[str, ...] = setting(
        (),
        "More host names under which the hub answers programs; browsers are led from there to `public_url`.",
        kind="list",
    )
    public_url: str = setting(
        "",
        "Address of the platform's pages as browsers have it, as `https://hub.example.org/`; "
        "empty: `http://localhost:PORT/`.",
        kind="str",
    )
    users_domain: str = setting(
        "",
        "Domain below which each user's notebook servers have a host name of their own (`NAME.DOMAIN`; all of them lead "
        "here), apart from the platform's; empty: `localhost`, where `public_url` is that too. `none`: all pages on one "
        "name, and one opened link of another user can be the account.",
        kind="str",
    )
    base_path: str = setting(
        "/",
        "Path below which all of the hub is, as `/mlp/`, where the names have other pages beside it; a gateway in front leaves it "
        "in the requests.",
        kind="str",
    )
    tls_cert: Path | None = setting(
        None,
        "File of a certificate with its chain (PEM): the public port then speaks TLS by itself, and takes a renewed file without "
        "a restart.",
        kind="path",
    )
    tls_key: Path | None = setting(
        None,
        "File of the key of `tls_cert` (PEM, not encrypted); unset: it stands in that file too.",
        kind="path",
    )
    trusted_proxies: tuple[str, ...] = setting(
        (),
        "Addresses or networks of the reverse proxies in front, whose X-Forwarded-For is believed, counted from the right; "
        "empty: nobody's, and all limits by address count a proxy as one.",
        kind="list",
    )
    hsts: int = setting(
        86_400,
        "So long browsers keep to TLS once they came over it (Strict-Transport-Security), where `public_url` is https; 0: not told.",
        kind="int",
        unit="s",
        low=0,
        high=63_072_000,
    )
    connections_max: int = setting(
        5000,
        "Connections that the public port holds at once; fewer where the limit of open files is too low for them.",
        kind="int",
        low=10,
        high=100_000,
        limit="requests",
    )
    connections_per_address: int = setting(
        1000,
        "Of these, from one address (of IPv6: one /64 network). Those of `trusted_proxies` count for whom they bring.",
        kind="int",
        low=10,
        high=100_000,
        limit="requests",
    )
    connections_per_user: int = setting(
        500,
        "Connections that one user's notebook servers and jobs hold to the service at once, and as many to the hub; "
        "requests and WebSockets that the public port holds to one user's notebook servers.",
        kind="int",
        low=10,
        high=100_000,
        limit="requests",
    )

    apps_body_max: int = setting(
        100, "Body of a request to an app.", kind="int", unit="MiB", low=1, high=100_000, limit="apps"
    )
    apps_answer_s: float = setting(
        300.0,
        "An app's answer to a request has begun after so long, or is waited for no longer.",
        kind="float",
        unit="s",
        low=1,
        high=86_400,
        limit="apps",
    )
    apps_wake_s: float = setting(
        60.0,
        "A request to an app that sleeps waits so long until it answers.",
        kind="float",
        unit="s",
        low=0,
        high=3600,
        limit="apps",
    )
    apps_key_rate: float = setting(
        50.0,
        "Requests a second to an app with one key; twice as many may come at once.",
        kind="float",
        low=0.01,
        high=1e6,
        limit="apps",
    )
    apps_visitor_rate: float = setting(
        50.0,
        "Requests a second of one person to the apps of one tenant; twice as many may come at once.",
        kind="float",
        low=0.01,
        high=1e6,
        limit="apps",
    )
    apps_tenant_rate: float = setting(
        500.0,
        "Requests a second to all apps of a tenant; twice as many may come at once.",
        kind="float",
        low=0.01,
        high=1e6,
        limit="apps",
    )

    @property
    def tls(self) -> tuple[Path, Path] | None:
        """Files of the public port's certificate and of its key, where it speaks TLS."""
        if self.tls_cert is None:
            if self.tls_key is not None:
                raise SettingsError(
                    "MLP_TLS_KEY is set, and MLP_TLS_CERT is not: name the certificate too, or neither"
                )
            return None
        return self.tls_cert, self.tls_key or self.tls_cert

    @property
    def in_front(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """Networks of the reverse proxies in front of the public port."""
        found = networks("MLP_TRUSTED_PROXIES", self.trusted_proxies)
        if everybody := next((one for one in found if one.prefixlen == 0), None):
            raise SettingsError(
                f"MLP_TRUSTED_PROXIES has {everybody}, which is everybody; name the addresses of your proxies"
            )
        return found

"""Settings that say how people log in; a part of `Settings`."""

# ruff: noqa: RUF009 - `setting` makes a dataclass field
from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mlp_hub.settings.login_kinds import LOGIN_KINDS, LoginKind, by_default
from mlp_hub.settings.values import SettingsError, setting

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, kw_only=True)
class LoginSettings:
    """Settings of the provider whose accounts people log in with."""

    __slots__ = ()  # `Settings` makes them: of two bases that have some no class can be made

    login: str = setting(
        "accounts",
        "How people log in: "
        + "; ".join(f"{name} ({about.words})" for name, about in LOGIN_KINDS.items())
        + ".",
        kind="str",
        choices=tuple(LOGIN_KINDS),
    )
    login_title: str = setting(
        "",
        "What people call the provider, as on the button `Log in with TITLE`; empty: what it is.",
        kind="str",
    )
    login_issuer: str = setting(
        "",
        "The provider's address: its issuer, as `https://sso.example.org/realms/NAME` of Keycloak; of GitHub its own, where it is not "
        "github.com.",
        kind="str",
    )
    login_client_id: str = setting("", "What the provider knows this hub as.", kind="str")
    login_client_secret: str = setting(
        "",
        "The secret by which the hub shows that it is that client; better kept in `login_client_secret_file`.",
        kind="str",
        secret=True,
    )
    login_client_secret_file: Path | None = setting(
        None,
        "A file that holds it; unset: `secrets/login_client_secret` in the state directory.",
        kind="path",
    )
    login_cli_client_id: str = setting(
        "",
        "The provider's public client with device flow that `mlp login` takes; empty: it goes through the browser.",
        kind="str",
    )
    login_scopes: tuple[str, ...] = setting(
        (),
        f"Scopes that the provider is asked for; empty: what the hub needs, {by_default(lambda kind: ','.join(kind.scopes))}.",
        kind="list",
    )
    login_name_claim: str = setting(
        "",
        f"The claim that a new person's user name is made of; empty: {by_default(lambda kind: kind.name_claim)}.",
        kind="str",
    )
    login_groups_claim: str = setting(
        "",
        f"The claim that lists a person's groups; empty: {by_default(lambda kind: kind.groups_claim)}.",
        kind="str",
    )
    login_admin_groups: tuple[str, ...] = setting(
        (),
        "Groups whose members are administrators of the hub, for as long as they are members.",
        kind="list",
    )
    login_tenants: tuple[str, ...] = setting(
        (),
        "Rules `GROUP -> TENANT` or `GROUP -> TENANT:admin`, such as `/ml/{tenant} -> {tenant}`: which groups give a place in which "
        "tenant; empty: a group gives one in the tenant of its name.",
        kind="list",
    )
    login_new_tenants: str = setting(
        "refuse",
        "What happens to a group that is to be in a tenant that is not there: the tenant is made, or the group is left out.",
        kind="str",
        choices=("make", "refuse"),
    )
    login_tenant_quota: tuple[str, ...] = setting(
        (),
        "What tenants that are made for a group are given, such as `cpu=16,ram=65536,gpu:h100=2,parent=company`.",
        kind="list",
    )
    login_refresh_s: float = setting(
        30.0,
        "So old what is known of a person may be before the provider is asked again.",
        kind="float",
        unit="s",
        low=1,
        high=86_400,
    )
    login_unseen_s: float = setting(
        86_400.0,
        "So long after somebody's login at the provider ended, when it cannot be asked about them any more, their tokens are taken and "
        "their notebook servers run; then both wait until they log in again.",
        kind="float",
        unit="s",
        low=0,
        high=31_536_000,
    )
    login_accounts: str = setting(
        "admins",
        "Whose accounts of this hub can log in with a password beside the provider: those of administrators, for when the provider "
        "is away; all; none.",
        kind="str",
        choices=("admins", "all", "none"),
    )
    login_logout: bool = setting(
        True, "Whether who logs out here is logged out at the provider too, where it has a way.", kind="bool"
    )
    login_clock_skew_s: float = setting(
        30.0,
        "So far the provider's clock may be off.",
        kind="float",
        unit="s",
        low=0,
        high=300,
    )

    if TYPE_CHECKING:
        secret: Callable[[str], str]
        secret_file: Callable[[str], Path]

    @property
    def login_kind(self) -> LoginKind:
        """Properties of the chosen way to log in."""
        return LOGIN_KINDS[self.login]

    @property
    def login_provider(self) -> str:
        """The provider's address, without a slash at its end; empty where there is none."""
        return (self.login_issuer or self.login_kind.issuer).rstrip("/") if self.login_kind.title else ""

    @property
    def login_name(self) -> str:
        """Name of the provider for people; empty without a provider."""
        return (self.login_title or self.login_kind.title) if self.login_kind.title else ""

    @property
    def login_secret_path(self) -> Path:
        """Where the client's secret is read, where no setting holds it."""
        return self.login_client_secret_file or self.secret_file("login_client_secret")

    def login_secret(self) -> str:
        """Read the client's secret; empty where there is none: the client is then a public one."""
        if self.login_client_secret:
            return self.login_client_secret
        try:
            return self.login_secret_path.read_text().strip()
        except FileNotFoundError:
            return ""

    def check_login(self) -> None:
        """Raise SettingsError where the provider cannot be meant."""
        if not self.login_kind.title:
            return
        if not self.login_provider:
            raise SettingsError(
                f"MLP_LOGIN is {self.login}, and MLP_LOGIN_ISSUER is not set. Set it to the provider's address, "
                "as https://sso.example.org/realms/NAME"
            )
        if not self.login_client_id:
            raise SettingsError(
                f"MLP_LOGIN is {self.login}, and MLP_LOGIN_CLIENT_ID is not set. Set it to what the provider calls this hub"
            )
        parts = urlsplit(self.login_provider)
        plain = parts.scheme == "http" and is_loopback(parts.hostname or "")
        if not (parts.scheme == "https" or plain) or not parts.hostname or parts.query or parts.fragment:
            raise SettingsError(
                f"MLP_LOGIN_ISSUER is {self.login_issuer!r}; it must be an https:// address without `?` and `#`, or http:// of "
                "this machine itself (localhost)"
            )


def is_loopback(host: str) -> bool:
    """Whether a host is this machine itself."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

"""Host names of the hub for browsers: the platform's name, and one for each user's notebook server.

A browser gives a page the rights of its origin: its cookies and its requests. A user's server
serves any page that its user likes. So it has its own origin, and the platform's name is not a
parent of its name. Only the standard library is imported.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from mlp_hub.settings.values import SettingsError

LOCAL = "localhost"
"""Browsers resolve it and each name below it to this machine, keep cookies of one such name from every other, and
take pages there for as safe as over TLS."""
ONE_NAME = "none"
"""Value of the setting `users_domain` that switches separate names for users off."""
ONE_NAME_MEANS = (
    "all pages are on one host name: one opened link to another user's notebook server can hand over the account of "
    "whoever opens it; an administrator's is the whole hub"
)
"""Warning for an operator who has switched the names off."""
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
_DOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_SEGMENT = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")
_TAKEN = ("api", "data", "hub", "services", "user")
_HERE = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not bound
_LOOPBACK = ("127.0.0.1", "::1", LOCAL)


@dataclass(frozen=True, slots=True)
class Origins:
    """`platform` is an origin as browsers send it (`http://localhost:8000`); `users` a domain, empty for one name for all."""

    platform: str
    users: str

    @property
    def host(self) -> str:
        """The platform's host name, without its port."""
        return urlsplit(self.platform).hostname or ""

    @property
    def apart(self) -> bool:
        """Whether each user's server has its own name."""
        return bool(self.users)

    @property
    def guarded_cookies(self) -> bool:
        """Whether browsers keep `__Host-` cookies here, which no other name can plant: over TLS or below localhost."""
        return self.apart and (self.platform.startswith("https:") or is_local(self.host))

    def cookie(self, name: str) -> str:
        """Name a cookie of the platform's."""
        return f"__Host-{name}" if self.guarded_cookies else name

    @property
    def servers(self) -> str:
        """Write where users' servers are, for people."""
        return f"{self.of_label('NAME')}/" if self.apart else f"{self.platform}/user/NAME/"

    def of_label(self, name: str) -> str:
        """Write the origin of a name below the domain of users' names; empty where there is none."""
        scheme, _, rest = self.platform.partition("://")
        return f"{scheme}://{name}.{self.users}{rest[len(self.host) :]}" if self.apart else ""

    def of_user(self, user: str) -> str:
        """Name the host of a user's notebook servers; only where `apart`."""
        return f"{label(user)}.{self.users}"


def base_of(path: str) -> str:
    """Write the path below which the hub is without a slash at its end; raise SettingsError where it cannot be one."""
    base = path.rstrip("/")
    parts = base.split("/")[1:]
    if base and (base[0] != "/" or not all(_SEGMENT.fullmatch(part) for part in parts)):
        raise SettingsError(
            f"MLP_BASE_PATH is {path!r}; it must be a path of letters, digits, '-', '_' and '.', as /mlp/"
        )
    if parts and parts[0] in _TAKEN:
        raise SettingsError(
            f"MLP_BASE_PATH is {path!r}; {', '.join(_TAKEN)} are paths of the hub's own. Take another, as /mlp/"
        )
    return base


def is_local(host: str) -> bool:
    """Whether a name is `localhost` or below it."""
    return host == LOCAL or host.endswith(f".{LOCAL}")


def label(user: str) -> str:
    """Write any user name as a label of a host name, no two users' names as the same.

    Plain names stay as they are. Others become a hint of the name and a hash that nobody can hit by choosing a name.
    """
    if _LABEL.fullmatch(user) and "--" not in user:
        return user
    digest = base64.b32encode(hashlib.sha256(user.encode("utf-8", "surrogatepass")).digest())
    hint = re.sub(r"[^a-z0-9]", "", user.lower())[:20] or "x"
    return f"u-{hint}--{digest[:26].decode().lower()}"


def find(*, bind: str, port: int, public_url: str, users_domain: str, tls: bool = False) -> Origins:
    """Work out the names from the settings; raise SettingsError where they cannot be meant.

    `tls`: the public port speaks it.
    """
    users = users_domain.lower().strip(".")
    scheme = "https" if tls else "http"
    if not public_url:
        if users == ONE_NAME:
            host = _HERE.get(bind, bind)
            return Origins(f"{scheme}://{_bracketed(host)}:{port}", "")
        if _HERE.get(bind, bind) not in _LOOPBACK:
            raise SettingsError(
                f"MLP_BIND is {bind!r}, where no browser finds the names below {LOCAL} that each user's server has one "
                f"of. Say by which names it does: MLP_PUBLIC_URL and MLP_USERS_DOMAIN; or MLP_USERS_DOMAIN={ONE_NAME}"
            )
        return _checked(f"{scheme}://{LOCAL}:{port}", users or LOCAL)
    platform = _origin(public_url)
    if tls and not platform.startswith("https:"):
        raise SettingsError(
            f"MLP_PUBLIC_URL is {public_url!r}, and with MLP_TLS_CERT the hub speaks TLS: begin it with https"
        )
    if users == ONE_NAME:
        return Origins(platform, "")
    if not users and urlsplit(platform).hostname != LOCAL:
        raise SettingsError(
            f"MLP_PUBLIC_URL is {public_url!r}, and MLP_USERS_DOMAIN is not set. Set it to a second domain whose names all "
            f"lead here (*.DOMAIN), for each user's notebook server; or to {ONE_NAME}: then one opened link can be the account"
        )
    return _checked(platform, users or LOCAL)


def _origin(public_url: str) -> str:
    try:
        parts = urlsplit(public_url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), 0
    host = parts.hostname or ""
    named = _DOMAIN.fullmatch(host) or _is_address(host)
    fits = parts.scheme in ("http", "https") and named and port != 0
    if not fits or parts.path not in ("", "/") or parts.query or parts.fragment or parts.username is not None:
        raise SettingsError(
            f"MLP_PUBLIC_URL is {public_url!r}; it must be the address of the platform's pages, as https://hub.example.org/"
        )
    return f"{parts.scheme}://{_bracketed(host)}" + (f":{port}" if port is not None else "")


def _checked(platform: str, users: str) -> Origins:
    host = urlsplit(platform).hostname or ""
    if not _DOMAIN.fullmatch(users) or _is_address(users):
        raise SettingsError(
            f"MLP_USERS_DOMAIN is {users!r}; it must be a domain, as hub-users.example.net, or {ONE_NAME}"
        )
    if _is_address(host):
        raise SettingsError(
            f"MLP_PUBLIC_URL names the address {host}; users' servers apart from the platform need a name"
        )
    # a page may plant cookies on its parents, but never on `localhost`, which is nobody's
    if users == LOCAL and host == LOCAL:
        return Origins(platform, users)
    if host == users or host.endswith(f".{users}") or users.endswith(f".{host}"):
        raise SettingsError(
            f"MLP_USERS_DOMAIN is {users!r}, and MLP_PUBLIC_URL's host {host!r}: neither may be the other or below it, "
            "for a user's pages would have a say in the platform's cookies. Take two names, as hub.example.org and hub-users.example.net"
        )
    return Origins(platform, users)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and host[0] != "[" else host


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True

"""One request as its handler sees it, and what the handlers share."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mlp_hub.api.auth import Authenticator
from mlp_hub.api.hubclient import HubClient
from mlp_hub.api.limits import Limiter
from mlp_hub.api.principal import Principal
from mlp_hub.api.replay import Answers
from mlp_hub.api.routes import Route
from mlp_hub.api.sessions import Sessions

if TYPE_CHECKING:
    from mlp_hub.service.applications import Applications
    from mlp_hub.service.platform import Platform

BASE = "/services/mlp"
API_BASES = (f"{BASE}/api/v1", "/api/v1")


@dataclass(frozen=True, slots=True)
class Config:
    """What the HTTP side is told once.

    `allowed_hosts` are the host names browsers may use; None lets every name pass (sockets that no browser can
    reach, or an address that is public anyway). `secure_cookies` is for hubs behind TLS.
    """

    version: str
    allowed_hosts: frozenset[str] | None = None
    secure_cookies: bool = False
    cookie_secret: bytes = field(default=b"", repr=False)
    hub_prefix: str = "/hub"
    recheck_s: float = 3.0
    ping_s: float = 20.0


@dataclass(slots=True)
class Service:
    """Everything that handlers work with."""

    platform: Platform
    hub: HubClient
    auth: Authenticator
    sessions: Sessions
    limiter: Limiter
    config: Config
    answers: Answers
    applications: Applications
    clock: Callable[[], float] = time.time
    openapi: bytes = b""  # made when it is first asked for


@dataclass(slots=True)
class Call:
    """One authorised request: path values, decoded query and body."""

    service: Service
    route: Route
    principal: Principal
    params: dict[str, str]
    query: Any = None
    body: Any = None
    idempotency_key: str | None = None
    accept: str = ""
    address: str = ""
    send: Callable[[Any], Any] | None = None

    @property
    def platform(self) -> Platform:
        """The use cases."""
        return self.service.platform

    @property
    def user(self) -> str:
        """The user of the path."""
        return self.params["user"]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that is not simply a struct: bytes with headers, or a stream of bytes."""

    body: bytes = b""
    stream: AsyncIterator[bytes] | None = None
    media: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)

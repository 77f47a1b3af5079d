"""One request as its handler sees it, and what the handlers share."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mlp_hub.api.auth import recent
from mlp_hub.api.auth.app_visits import AppVisits
from mlp_hub.api.auth.authentication import Authenticator
from mlp_hub.api.auth.principal import Principal
from mlp_hub.api.auth.sessions import Sessions
from mlp_hub.api.auth.token_uses import TokenUses
from mlp_hub.api.edge import answers
from mlp_hub.api.edge.limits import Limiter
from mlp_hub.api.edge.refusals import RefusalLog
from mlp_hub.api.edge.replay import RecentAnswers
from mlp_hub.api.figures import ProxyFigures
from mlp_hub.api.hubclient import HubClient
from mlp_hub.api.routes import Route
from mlp_hub.domain.tenants.tenant_context import NOBODY, TenantContext
from mlp_language.message import Viewer
from mlp_language.render import ENGLISH, Reader

if TYPE_CHECKING:
    from mlp_hub.service.platform import Platform
    from mlp_hub.service.tenants.requests.signups import Applications

BASE = "/services/mlp"
"""Where the service is below the path of all of the hub."""
API_BASES = (f"{BASE}/api/v1", "/api/v1")


@dataclass(frozen=True, slots=True)
class Config:
    """Configuration of the HTTP side, set once.

    `allowed_hosts` are the host names that browsers may use. None lets every name pass (for sockets
    that a browser cannot reach, or for an address that is public anyway). `secure_cookies`: browsers
    come over TLS, or to a name below localhost. `host_cookies`: no other site shares the pages' host
    name, so that `__Host-` cookies keep others' out. `warnings` are shown to platform admins. `base` is
    the beginning of browsers' paths, before all that is here (`/mlp`). `app_origin` is the origin of an
    app's pages, with `{label}` instead of its name. It is empty where apps have no origins. `hub_attached`: the
    hub is another's, which asks nobody for a recent login.
    """

    version: str
    allowed_hosts: frozenset[str] | None = None
    secure_cookies: bool = False
    host_cookies: bool = False
    recent_cookie: str = recent.COOKIE
    warnings: tuple[str, ...] = ()
    cookie_secret: bytes = field(default=b"", repr=False)
    base: str = ""
    app_origin: str = ""
    recheck_s: float = 3.0
    ping_s: float = 20.0
    hub_attached: bool = False

    @property
    def cookie_path(self) -> str:
        """Where the session's cookie is sent to; a `__Host-` cookie has no choice."""
        return "/" if self.host_cookies else f"{self.pages}/"

    @property
    def pages(self) -> str:
        """Beginning of the service's addresses in browsers."""
        return self.base + BASE

    @property
    def hub_prefix(self) -> str:
        """Beginning of the hub's addresses in browsers."""
        return f"{self.base}/hub"


@dataclass(slots=True)
class Service:
    """Everything that handlers work with."""

    platform: Platform
    hub: HubClient
    auth: Authenticator
    sessions: Sessions
    limiter: Limiter
    config: Config
    answers: RecentAnswers
    applications: Applications
    uses: TokenUses
    visits: AppVisits
    document: Callable[[], bytes]
    """Returns the OpenAPI document of all routes, as JSON."""
    refusals: RefusalLog
    figures: ProxyFigures | None = None
    clock: Callable[[], float] = time.time


@dataclass(slots=True)
class Call:
    """One authorised request: path values, decoded query and body. `context` bounds which owned objects it comes to."""

    service: Service
    route: Route
    principal: Principal
    params: dict[str, str]
    context: TenantContext = NOBODY
    query: Any = None
    body: Any = None
    idempotency_key: str | None = None
    accept: str = ""
    range: str = ""  # the header of that name, and If-Range
    if_range: str = ""
    address: str = ""
    reader: Reader = ENGLISH
    viewer: Viewer = answers.STRANGER
    send: Callable[[Any], Any] | None = None

    def encode(self, value: Any) -> bytes:
        """Encode an answer in the language of the caller, without the parts that the caller may not see."""
        return answers.encode(value, self.reader, self.viewer)

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
    """An answer that is not simply a struct: bytes with headers, or a stream of bytes. No status: the route's."""

    body: bytes = b""
    status: int | None = None
    stream: AsyncIterator[bytes] | None = None
    media: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)

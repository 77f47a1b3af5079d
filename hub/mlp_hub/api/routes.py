"""The shape of a route, the table's type, and how a path finds its route."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

if TYPE_CHECKING:
    from mlp_hub.api.edge.call import Call

BODY_LIMIT = 2 * 1024 * 1024
"""Limit of requests: bytes of the body of a request."""
METRICS_BODY_LIMIT = 8 * 1024 * 1024
"""Limit of requests: bytes of the body of a request with metric points."""


class Relation(StrEnum):
    """Required relation of the caller to the object of the path.

    A platform admin has each relation to every object.
    """

    PUBLIC = "public"  # no token is asked for
    ANYBODY = "anybody"  # any caller with a token
    SELF = "self"  # the user of the path
    OWNED = "owned"  # the owner of the object of the path (`owned.py`), or an admin of its tenant
    VISITOR = "visitor"  # who may open the app of the path, as its access says, or owns it
    MEMBER = "member"  # a member of the tenant of the path
    TENANT_ADMIN = "tenant admin"
    PLATFORM = "platform admin"


Handler = Callable[["Call"], Any]
"""Makes the answer, awaitable; of a WebSocket its frames, an asynchronous iterator."""


@dataclass(frozen=True, slots=True)
class Route:
    """One row of the table: everything that validation, authorisation and OpenAPI need to know.

    `query` and `body` are msgspec structs; `reply` is any type that msgspec encodes. `job_token` lets a job's own
    token in (for its own job). `socket` marks a WebSocket, whose handler sends frames of type `reply`. `recent` asks a
    browser's session for a password that was entered lately (`recent.py`). `makes` marks a PUT that makes something, as
    each POST does; `idempotent` has the answer kept here, where the handler keeps none. `partial` marks one of which a `Range` can be
    asked for, answered as 206. `ends_with_client` marks a costly look that changes nothing and ends when nobody waits for it.
    """

    method: str
    path: str
    handler: Handler
    summary: str
    relation: Relation
    scope: str | None = None
    body: Any = None
    query: Any = None
    reply: Any = str
    status: int = 200
    body_limit: int = BODY_LIMIT
    body_optional: bool = False
    job_token: bool = False
    socket: bool = False
    idempotent: bool = False
    recent: bool = False
    makes: bool = False
    partial: bool = False
    ends_with_client: bool = False
    media: str = "application/json"
    bucket: str = "api"
    params: tuple[str, ...] = field(default=(), init=False)

    def __post_init__(self) -> None:
        names = tuple(s[1:].split("}")[0] for s in self.path.split("/") if s.startswith("{"))
        object.__setattr__(self, "params", names)

    @property
    def wire_method(self) -> str:
        """Name how it is called: its method, `WS` for a WebSocket."""
        return "WS" if self.socket else self.method

    @property
    def takes_key(self) -> bool:
        """Whether a request with an `Idempotency-Key` that is repeated makes nothing more."""
        return self.method == "POST" or self.makes

    @property
    def title(self) -> str:
        """Name the route for people: `GET /tenants/{tenant}`."""
        return f"{self.wire_method} {self.path}"

    @property
    def group(self) -> str:
        """Name of the group of routes in metrics: the module of the handler."""
        return self.handler.__module__.rsplit(".", 1)[-1]

    @property
    def operation(self) -> str:
        """Name the route in OpenAPI and in logs: the handler's module and name."""
        return f"{self.handler.__module__.rsplit('.', 1)[-1]}_{self.handler.__name__}"


@dataclass(slots=True)
class _Node:
    literal: dict[str, _Node] = field(default_factory=dict)
    variable: _Node | None = None
    routes: dict[tuple[str, str], Route] = field(default_factory=dict)  # (verb, method)


@dataclass(frozen=True, slots=True)
class Found:
    """A route with the values of its path."""

    route: Route
    params: dict[str, str]


class RouteTable:
    """Finds the route of a path. Segments are split before they are decoded, so an encoded `/` or `:` stays text."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._root = _Node()
        for route in self.routes:
            self._add(route)

    def _add(self, route: Route) -> None:
        node = self._root
        segments, verb = _split(route.path)
        for segment in segments:
            if segment.startswith("{"):
                node.variable = node.variable or _Node()
                node = node.variable
            else:
                node = node.literal.setdefault(segment, _Node())
        key = (verb, route.wire_method)
        if key in node.routes:
            raise ValueError(f"two routes answer {route.title}")
        node.routes[key] = route

    def find(self, method: str, path: str) -> Found | None:
        """Find the route for a method (`WS` for a WebSocket) and a raw path below the base, or None."""
        segments, verb = _split(path)
        values: list[str] = []
        node = self._root
        for segment in segments:
            child = node.literal.get(segment)
            if child is None:
                child = node.variable
                value = decode_segment(segment)
                if child is None or not value:
                    return None
                values.append(value)
            node = child
        route = node.routes.get((verb, method))
        return Found(route, dict(zip(route.params, values, strict=True))) if route else None


def decode_segment(segment: str) -> str | None:
    """Decode a path segment once; None when it is not UTF-8 or holds what no name holds."""
    try:
        value = unquote_to_bytes(segment).decode() if "%" in segment else segment
    except UnicodeDecodeError:
        return None
    if "/" in value or "\\" in value or any(ord(c) < 32 or ord(c) == 127 for c in value):
        return None
    return value


def _split(path: str) -> tuple[list[str], str]:
    """Split `/users/ann/jobs/x:cancel` into its segments and its verb."""
    segments = path.strip("/").split("/") if path.strip("/") else []
    if path != "/" and (path.endswith("/") or "//" in path):
        return ["\0"], ""  # no route: one spelling for one object
    verb = ""
    if segments:
        segments[-1], _, verb = segments[-1].partition(":")
    return segments, verb

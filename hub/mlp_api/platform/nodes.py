"""Nodes that are taken out of service, on the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta

from mlp_api.types import LINE_PATTERN, Request, Response


class NodeDrainSet(Request):
    """Why a node is taken out of service. With `evict` what runs there goes: jobs wait in the queue again, servers are stopped."""

    reason: Annotated[str, Meta(min_length=1, max_length=500, pattern=LINE_PATTERN)]
    evict: bool = False


class NodeDrained(Response):
    """That a node is out of service: why, by whom and since when, and whether what runs there is moved away."""

    reason: str
    actor: str
    since: datetime
    evict: bool


class NodeUser(Response):
    """Something that runs on a node, with `ranks` of its processes there `of` all.

    `checkpoint_every` (s) is how often a job said that it saves one; `ending`: it was asked to end already. The `name` of a
    server is that of a named one, empty of its user's own.
    """

    kind: Literal["job", "app", "server"]
    user: str
    name: str
    tenant: str
    ranks: int
    of: int
    checkpoint_every: int | None
    ending: bool


class NodeDrainPreview(Response):
    """Preview of a node's drain.

    `drain` is how the node is drained, null while it is in service. `stops` is the work that runs on
    it. `others` is the number of other nodes that take new work.
    """

    node: str
    drain: NodeDrained | None
    others: int
    stops: list[NodeUser]

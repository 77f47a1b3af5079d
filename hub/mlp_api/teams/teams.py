"""REST objects for requests that someone decides on: more quota, a place in a team."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, field

from mlp_api.types import LINE_PATTERN, Counted, Gpu, Name, QuotaCpu, QuotaRam, Request, Response, Rom

Line = Annotated[str, Meta(max_length=500, pattern=LINE_PATTERN)]


class QuotaAsk(Request):
    """Requested total of a tenant in each dimension that is named; the other dimensions stay.

    `reason` is the purpose.
    """

    reason: Annotated[str, Meta(min_length=1, max_length=500, pattern=LINE_PATTERN)]
    cpu: QuotaCpu | None = None
    gpu: Gpu | None = None
    ram: QuotaRam | None = None
    rom: Rom | None = None
    amounts: Counted = field(default_factory=dict)


class QuotaAnswer(Request):
    """A word to those who asked."""

    word: Line = ""


class QuotaRequest(Response):
    """A request for more quota. The amounts are what the tenant would have, null where nothing is asked; `word` is the answer's."""

    id: str
    tenant: str
    user: str
    asked_at: datetime
    cpu: float | None
    gpu: float | None
    ram: int | None
    rom: int | None
    amounts: dict[str, int]
    reason: str
    state: Literal["open", "accepted", "declined", "withdrawn"]
    decided_by: str | None
    decided_at: datetime | None
    word: str


class JoinAsk(Request):
    """Whom one asks for a place, and a word to its admins."""

    tenant: Name
    note: Annotated[str, Meta(max_length=200, pattern=LINE_PATTERN)] = ""


class Team(Response):
    """A tenant that may be asked for a place; `asked_at` is when this person did, null where they have not."""

    tenant: str
    description: str
    asked_at: datetime | None


class Teams(Response):
    """The tenants that somebody may ask; none where `managed_by`, who manages the groups of people, decides on all places."""

    teams: list[Team]
    managed_by: str


class JoinRequest(Response):
    """A person's request for a place in a tenant."""

    tenant: str
    user: str
    asked_at: datetime
    note: str


class MemberCapSet(Request):
    """Limit on the jobs and notebook servers that a member holds at once in the tenant.

    Null in a dimension means as much as the tenant may hold. `user` null means each member without an
    individual cap. A cap in which all values are null is removed.
    """

    user: Annotated[str, Meta(min_length=1, max_length=255, pattern=LINE_PATTERN)] | None = None
    cpu: QuotaCpu | None = None
    gpu: Gpu | None = None
    jobs: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None


class MemberCap(Response):
    """Limit on the jobs and notebook servers that a member holds at once in the tenant.

    `user` is null in the limit for each member without an individual cap.
    """

    user: str | None
    cpu: float | None
    gpu: float | None
    jobs: int | None

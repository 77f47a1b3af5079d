"""Notices on the wire: what somebody wants to be told of their jobs, and what there is to tell."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, get_args

from msgspec import Meta, field

from mlp_api.said import Detail, Text
from mlp_api.terms import NoticeEvent
from mlp_api.types import LINE_PATTERN, Name, Request, Response

Events = Annotated[list[NoticeEvent], Meta(max_length=len(get_args(NoticeEvent)))]
CLOCK_PATTERN = r"^([01][0-9]|2[0-3]):[0-5][0-9]$(?!\n)"
ClockTime = Annotated[str, Meta(pattern=CLOCK_PATTERN, max_length=5)]


class QuietTime(Request):
    """Time of each day in which nothing is sent; past midnight where `until` is before `begin`."""

    begin: ClockTime
    until: ClockTime


class ChannelSet(Request):
    """A way to somebody. `address` is `mailto:ann@example.org`, `https://...`, or a service's; left out: what it was."""

    name: Name
    events: Events
    address: Annotated[str, Meta(min_length=1, max_length=2048, pattern=LINE_PATTERN)] | None = None


class NotificationsSet(Request):
    """All that somebody chooses; channels that are left out are removed."""

    browser: Events = field(default_factory=list)
    quiet: QuietTime | None = None
    timezone: Annotated[str, Meta(min_length=1, max_length=64, pattern=LINE_PATTERN)] = "UTC"
    channels: Annotated[list[ChannelSet], Meta(max_length=10)] = field(default_factory=list)


class NoticeChannel(Response):
    """A way to somebody, as far as it is told: `shown` is what of its address is no secret. `trouble` says why it failed last."""

    name: Name
    kind: Literal["mail", "webhook", "service"]
    shown: str
    events: list[NoticeEvent]
    told_at: datetime | None
    trouble: Text | None


class Notifications(Response):
    """What somebody chose, and what may be chosen: whether this hub sends mail, and which services' addresses it takes."""

    browser: list[NoticeEvent]
    quiet: QuietTime | None
    timezone: str
    channels: list[NoticeChannel]
    mail: bool
    services: list[str]


class Notice(Response):
    """Something to be told of a job, or of a request of `tenant`, where `job` is empty. `id` grows with time; `quiet`: somebody does not want to be told of it now."""

    id: int
    event: NoticeEvent
    job: str
    run: int
    tenant: str
    at: datetime
    title: Text
    text: Text
    detail: Detail
    quiet: bool


class ChannelTest(Request):
    """Which channel is to be tried."""

    channel: Name


class ChannelTested(Response):
    """How it went; `trouble` says why nothing was taken."""

    taken: bool
    trouble: Text | None

"""Notices on the wire: the choices of users about news of their jobs, and the news."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, get_args

from msgspec import Meta, field

from mlp_api.localized import Detail, Text
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
    """Channel to a user.

    `address` is `mailto:ann@example.org`, `https://...`, or the address of a service. Without `address`
    the channel keeps the present one.
    """

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
    """Channel to a user, without the secret part of its address.

    `shown` is the part of the address that is not secret: the host of a webhook, the domain of a mail address. `trouble` is the reason of the last failure.
    """

    name: Name
    kind: Literal["mail", "webhook", "service"]
    shown: str
    events: list[NoticeEvent]
    told_at: datetime | None
    trouble: Text | None


class Notifications(Response):
    """Notification choices of a user, and the possible choices.

    `mail`: this hub sends mail. `services` are the services whose addresses it takes.
    """

    browser: list[NoticeEvent]
    quiet: QuietTime | None
    timezone: str
    channels: list[NoticeChannel]
    mail: bool
    services: list[str]


class Notice(Response):
    """News of a job, or of a request of `tenant` where `job` is empty.

    `id` grows with time. `quiet`: the user does not want to be notified now.
    """

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
    """Channel to try."""

    channel: Name


class ChannelTested(Response):
    """How it went; `trouble` says why nothing was taken."""

    taken: bool
    trouble: Text | None

"""Announcements on the wire: messages of administrators to everybody or to the members of their tenant."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta

from mlp_api.types import LINE_PATTERN, Request, Response

Instant = Annotated[datetime, Meta(tz=True)]
AnnouncementLevel = Literal["info", "warning", "critical"]


class AnnouncementCreate(Request):
    """A new announcement, in plain text of one line: shown from `begin` (left out, or passed: at once) to before `until`."""

    text: Annotated[str, Meta(min_length=1, max_length=500, pattern=LINE_PATTERN)]
    until: Instant
    begin: Instant | None = None
    level: AnnouncementLevel = "info"


class Announcement(Response):
    """Message to the members of `tenant`, or to everybody where `tenant` is empty.

    The text is plain text, and clients must show it as plain text.
    """

    id: int
    tenant: str
    level: AnnouncementLevel
    text: str
    begin: datetime
    until: datetime
    made_by: str
    made_at: datetime

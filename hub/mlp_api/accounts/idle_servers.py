"""Idle notebook servers on the wire: a team's policy, reports of use, countdowns, and what keeps a server."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from mlp_api.types import Request, Response

ServerName = Annotated[
    str, Meta(max_length=255, description="name of a named server; empty: its user's only one")
]


class IdleServerPolicySet(Request):
    """Policy for idle notebook servers of a tenant.

    A server that is not used for `after_minutes` gets a countdown of `grace_minutes`, and is stopped at its end. 0 minutes: never.
    """

    after_minutes: Annotated[int, Meta(ge=0, le=43_200)]
    grace_minutes: Annotated[int, Meta(ge=5, le=1440)] = 60


class TenantIdlePolicy(Response):
    """Policy for idle notebook servers of a tenant; `after_minutes` is 0 where none is stopped."""

    after_minutes: int
    grace_minutes: int


class ServerUseReport(Request):
    """Report of a notebook server: the seconds since a kernel, a terminal or a process of it last worked, by a steady clock."""

    idle_s: Annotated[float, Meta(ge=0, le=1_000_000_000)]
    server: ServerName = ""


class ServerKeep(Request):
    """Request of the owner to keep a server for some hours, whether it is used or not."""

    hours: Annotated[int, Meta(ge=1, le=24)]
    server: ServerName = ""


class ServerCountdown(Response):
    """A notebook server under its team's policy.

    `idle_s` is how long it was not used when it reported last. `left_s` is the rest of the countdown to its stop, null without one.
    `kept_s` is how long its owner keeps it yet. All are seconds.
    """

    server: str
    tenant: str
    idle_s: float
    left_s: float | None
    kept_s: float

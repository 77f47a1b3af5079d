"""Jobs that hold GPUs without use, on the wire: a team's policy, the countdown of a job, and what keeps it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta

from mlp_api.types import Request, Response

HoldingEnd = Literal["stop", "suspend", "cancel"]


class IdleJobPolicySet(Request):
    """Policy for jobs of a tenant that hold GPUs without use.

    A job whose GPUs are not used for `after_minutes` gets a countdown of `grace_minutes`. At its end the job is suspended, or
    cancelled if it is a trial of a sweep. 0 minutes: never.
    """

    after_minutes: Annotated[int, Meta(ge=0, le=43_200)]
    grace_minutes: Annotated[int, Meta(ge=5, le=1440)] = 60


class TenantIdleJobPolicy(Response):
    """Policy for jobs of a tenant that hold GPUs without use; `after_minutes` is 0 where none ends."""

    after_minutes: int
    grace_minutes: int


class JobKeep(Request):
    """Request to keep a job for some hours from now on, whether it uses its GPUs or not."""

    hours: Annotated[int, Meta(ge=1, le=24)]


class JobIdle(Response):
    """GPUs that a running job holds and does not use.

    `idle_s` is how long they were not used. `left_s` is the rest of the countdown to its end, null without one. `kept_s` is how
    long it is kept yet. All are seconds. `ends` is what the end of the countdown does. `claims`: the job reports work, but the
    cluster measures none, so the idle time neither grows nor ends.
    """

    idle_s: float
    left_s: float | None
    kept_s: float
    ends: HoldingEnd
    claims: bool = False


class IdleHolding(Response):
    """Notebook server, or job with GPUs, of a tenant that holds something and was not used for long.

    `name` is that of a named server, empty for its user's only one; `run` is 0 for servers. cpu, gpu and ram are what it holds.
    `left_s` is the rest of the countdown to its end, null without one, and `kept_s` how long it is kept yet, in seconds. `ends` is what the end of the
    countdown does, null where the team has no policy. `claims`: a job reports work, but the cluster measures none.
    """

    kind: Literal["server", "job"]
    user: str
    name: str
    run: int
    idle_s: float
    idle_since: datetime
    cpu: float
    gpu: float
    ram: int
    left_s: float | None
    kept_s: float
    ends: HoldingEnd | None
    claims: bool = False

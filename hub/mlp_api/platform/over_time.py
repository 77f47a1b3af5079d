"""Use, waits, failures and answers over time on the wire."""

from __future__ import annotations

from datetime import datetime

from mlp_api.types import Response


class AmountsOverTime(Response):
    """One dimension (`cpu`, `ram`, `gpu`) by step, in the units of quotas: cores, MiB, devices.

    `held` is what the quota was charged, `used` what was measured of it, as means over the step, with the largest sample
    beside them. `limit` is the quota, or the capacity of the nodes; null there is unlimited.
    """

    dimension: str
    held: list[float | None]
    held_most: list[float | None]
    used: list[float | None]
    used_most: list[float | None]
    limit: list[float | None]


class ReasonOverTime(Response):
    """Mean number of jobs by step that wait for one reason; `New` is that of jobs that no cycle has looked at."""

    reason: str
    waiting: list[float | None]


class EventsOverTime(Response):
    """Sums of all steps: admissions with the median and p90 of their waits, ended jobs by result, requests to apps."""

    admitted: int
    wait_p50_s: float | None
    wait_p90_s: float | None
    finished: int
    failed: int
    cancelled: int
    requests: int
    errors: int
    latency_p50_ms: int | None
    latency_p99_ms: int | None


class OverTime(Response):
    """Steps of `step` seconds from `since` on, of a team, or of the cluster if `tenant` is null.

    Each list has one value for each step. `samples` counts the service's samples: where it is 0 the service did not run, and
    all values are null. The last step can be incomplete. Quantiles are also null where there was nothing to measure; those of
    waits are exact within a tenth, those of latency are bounds of the gateway's histogram.
    """

    tenant: str | None
    span: str
    since: datetime
    until: datetime
    step: int
    samples: list[int]
    amounts: list[AmountsOverTime]
    waiting: list[float | None]
    running: list[float | None]
    reasons: list[ReasonOverTime]
    admitted: list[int | None]
    wait_p50_s: list[float | None]
    wait_p90_s: list[float | None]
    finished: list[int | None]
    failed: list[int | None]
    cancelled: list[int | None]
    requests: list[int | None]
    errors: list[int | None]
    latency_p50_ms: list[int | None]
    latency_p99_ms: list[int | None]
    total: EventsOverTime

"""Accounting on the wire: held, used and idle amounts, their cost, and prices."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta, field

from mlp_api.localized import Text
from mlp_api.types import LINE_PATTERN, Request, Response

Price = Annotated[
    str, Meta(min_length=1, max_length=40, pattern=LINE_PATTERN, description="a number such as 0.042")
]
Day = Annotated[str, Meta(min_length=10, max_length=10, pattern=LINE_PATTERN, description="2031-03-01, UTC")]
GpuKindName = Annotated[str, Meta(min_length=1, max_length=100, pattern=LINE_PATTERN)]


class PricesOfPeriod(Request):
    """Prices from `begins` to before `ends`; without an end they stay in force.

    They are per core-hour, per GiB-hour of memory, per GiB-month of storage, and per GPU-hour by kind. The kind `*` is for
    all kinds without their own price.
    """

    begins: Day
    ends: Day | None = None
    core_hour: Price = "0"
    gib_hour: Price = "0"
    gib_month: Price = "0"
    gpu_hour: Annotated[dict[GpuKindName, Price], Meta(max_length=100)] = field(default_factory=dict)


class Prices(Request):
    """Price list; each period begins where the one before ends."""

    currency: Annotated[
        str, Meta(min_length=1, max_length=10, pattern=LINE_PATTERN, description="such as EUR")
    ]
    periods: Annotated[list[PricesOfPeriod], Meta(max_length=200)]


class UsageLine(Response):
    """Sums of one line; a field that the lines are not split by is null.

    `core_s`, `gpu_s` (seconds) and `memory_gib_s` are amounts of the quota times the time for which they were held, and
    `storage_gib_days` that of storage. The `used` part was measured. `idle` is the measured rest, and `unmeasured` is held
    time of work that nobody measured or that has not ended. Of the used and idle time, `reported` is the part that is known by jobs' own
    reports alone, which their programs can write, and `unknown` the part of older records of which nobody knows whether it is. Neither
    changes `cost`, which is for held amounts, in the currency of the price list.
    """

    day: str | None = None
    month: str | None = None
    tenant: str | None = None
    user: str | None = None
    work: str | None = None
    name: str | None = None
    gpu_kind: str | None = None
    core_s: float = 0.0
    core_used_s: float = 0.0
    core_idle_s: float = 0.0
    core_unmeasured_s: float = 0.0
    core_reported_s: float = 0.0
    core_unknown_s: float = 0.0
    memory_gib_s: float = 0.0
    memory_used_gib_s: float = 0.0
    memory_idle_gib_s: float = 0.0
    memory_unmeasured_gib_s: float = 0.0
    memory_reported_gib_s: float = 0.0
    memory_unknown_gib_s: float = 0.0
    gpu_s: float = 0.0
    storage_gib_days: float = 0.0
    cost: str | None = None


class UsageLines(Response):
    """Use from `since` to before `until`, both days in UTC.

    `total` is the sum of all lines, also of those on other pages. For a platform admin, `nodes` is what the nodes could give
    out, `free` the part of it that nobody held, and `platform` what the systems of the nodes keep for themselves. Names of
    work are kept from `names_since` on, and days before `priced_since` have no price.
    """

    since: str
    until: str
    at: datetime
    currency: str | None
    priced_since: str | None
    names_since: str
    recorded_since: str | None
    total: UsageLine
    nodes: UsageLine | None
    free: UsageLine | None
    platform: UsageLine | None
    lines: list[UsageLine]
    next: str | None


class BudgetSet(Request):
    """Budget of a tenant for each month, or for the period from `begins` to before `ends`, in the price list's currency.

    Admins get one notice in a period for each percentage of `levels`. With `stop`, new work is refused and
    waiting work waits once the whole budget is spent; running work continues.
    """

    amount: Price
    currency: (
        Annotated[str, Meta(min_length=1, max_length=10, pattern=LINE_PATTERN, description="such as EUR")]
        | None
    ) = None
    levels: Annotated[list[int], Meta(max_length=100)] = field(default_factory=lambda: [80, 100])
    stop: bool = False
    begins: Day | None = None
    ends: Day | None = None


class BudgetState(Response):
    """Budget of a tenant, and its present period from `since` to before `until`.

    `spent` is the cost of its days until now, and `percent` that part of `amount`. Both are null outside of
    the period and without a price list in its currency; `uncounted` then says what is missing and where it is set. `forecast` is the amount at the end of the period if spending continues at this rate; it is
    null in the first day. `stopped`: new work is refused now.
    """

    tenant: str
    amount: str
    currency: str
    levels: list[int]
    stop: bool
    begins: str | None
    ends: str | None
    since: str | None
    until: str | None
    spent: str | None
    percent: float | None
    forecast: str | None
    reached: list[int]
    stopped: bool
    uncounted: Text | None

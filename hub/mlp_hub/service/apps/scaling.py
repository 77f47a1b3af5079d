"""How many replicas of an app there are to be, by how many requests were under way at it. Pure.

It grows as soon as there are more than a replica is for, and shrinks only to what the busiest moment of the app's whole idle time needs:
a load that comes and goes starts and ends nothing all the time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

RECENT_S = 15.0
"""Tuning: seconds whose average makes an app grow: sooner with less, calmer with more; the gateway tells every 5 s."""
TOLERANCE = 0.1
"""Tuning: of a replica's requests, by which there may be more before there is one replica more: calm, for how full one gets."""


@dataclass(frozen=True, slots=True)
class AppLoad:
    """How many requests were under way at an app, on average, up to a moment `age_s` ago."""

    age_s: float
    under_way: float


@dataclass(frozen=True, slots=True)
class Scaling:
    """Between which numbers of replicas an app is, for how many requests one is, and after how long a quiet one shrinks."""

    least: int
    most: int
    concurrency: int
    idle_s: float


def replicas_for(
    wanted: int, scale: Scaling, loads: Sequence[AppLoad], *, known_s: float, quiet_s: float
) -> tuple[int, float | None]:
    """Return how many there are to be in place of `wanted`, and in how many seconds to look again though nothing is told.

    For `known_s` seconds has the load been known, and for `quiet_s` has nobody asked.
    """
    least, most = scale.least, scale.most
    if quiet_s >= scale.idle_s:
        return least, None
    low = max(least, 1)
    recent = [one.under_way for one in loads if one.age_s <= RECENT_S]
    if recent:
        needed = min(_needed(sum(recent) / len(recent), scale.concurrency), most)
        if needed > wanted:
            return needed, None
    busiest = max((one.under_way for one in loads if one.age_s <= scale.idle_s), default=0.0)
    fewest = max(low, min(_needed(busiest, scale.concurrency), most))
    if known_s >= scale.idle_s and fewest < wanted:
        return fewest, scale.idle_s - quiet_s
    if wanted <= least:
        return wanted, None
    # the next moment at which something is over: what is known of it, its busiest moment, or its last request
    ends = [scale.idle_s - quiet_s, scale.idle_s - known_s]
    ends += [scale.idle_s - one.age_s for one in loads if one.under_way == busiest]
    return wanted, min((end for end in ends if end > 0), default=None)


def _needed(under_way: float, concurrency: int) -> int:
    return math.ceil(under_way / concurrency - TOLERANCE)

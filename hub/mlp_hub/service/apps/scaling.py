"""Number of replicas of an app, by the number of requests in progress at it. Pure.

It grows as soon as there are more than one replica is for. It shrinks only to the need of the
busiest moment of the app's whole idle time: a load that comes and goes does not start and end
replicas all the time.
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
    """Number of requests in progress at an app, on average, up to a moment `age_s` ago."""

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
    """Return the number of replicas instead of `wanted`, and the seconds until the next look without news.

    The load has been known for `known_s` seconds. The last request was `quiet_s` seconds ago.
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

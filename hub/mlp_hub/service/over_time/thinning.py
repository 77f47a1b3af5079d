"""Thinning of stored samples, in the transaction of a new one. All state is in the rows: it survives restarts and takeovers.

A clock can be set. A sample never replaces another one of its moment, except where there are later ones: the clock was put
back then, and what is told of times that come once more gives way to what is measured now.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from mlp_hub.domain.over_time.grains import GRAINS
from mlp_hub.domain.over_time.sums import SpanSums, together
from mlp_hub.store.repos.workload.over_time import OverTimeSums


def store_sample(rows: OverTimeSums, number: int, last: int | None, sums: Mapping[str, SpanSums]) -> bool:
    """Store the sample of span `number` of the finest grain, and thin what is due; False where there is one.

    `last` is the span of the sample that this process stored before, and led since then; None: it stored none.
    """
    finest = GRAINS[0].seconds
    newest = rows.newest(finest)
    if newest == number and last in (None, number):
        return False
    if newest is not None and newest >= number:
        rows.put(finest, number, sums)
    else:
        rows.add(finest, number, sums)
    for grain in range(1, len(GRAINS)):
        of = GRAINS[grain].seconds // finest
        if last is not None and last // of == number // of:
            break
        _roll_up(rows, grain, number // of)
        _thin(rows, grain - 1, number)
        if grain == len(GRAINS) - 1:
            _thin(rows, grain, number)
    return True


def _roll_up(rows: OverTimeSums, grain: int, until: int) -> None:
    """Make the spans of a grain that are over, of those of the grain below."""
    seconds, finer, kept = GRAINS[grain].seconds, *GRAINS[grain - 1]
    parts = seconds // finer
    done = rows.newest(seconds, before=until)
    since = until - kept // parts if done is None else max(done + 1, until - kept // parts)
    since = min(
        since, until - 1
    )  # once more where it is there: after the clock was put back, it can be an old one
    spans: dict[int, dict[str, list[SpanSums]]] = defaultdict(lambda: defaultdict(list))
    for one in sorted(rows.between(finer, since * parts, until * parts)):
        spans[one.since // seconds][one.tenant].append(one.sums)
    for number, tenants in spans.items():
        rows.put(seconds, number, {tenant: together(sums) for tenant, sums in tenants.items()})


def _thin(rows: OverTimeSums, grain: int, number: int) -> None:
    """Delete samples older than is kept, and those in a future of a wrong clock."""
    seconds, kept = GRAINS[grain]
    now = number * GRAINS[0].seconds // seconds
    due = GRAINS[min(grain + 1, len(GRAINS) - 1)].seconds // seconds
    rows.thin(seconds, now - kept, now + kept, 2 * max(due, 1))

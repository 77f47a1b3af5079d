"""Stages of an attempt, as its pods tell them: of the watch on pods that is there anyway, nobody is asked for more.

The cluster's times are whole seconds. Where it was seen within the second that is told, what was seen is more exact; so it is
kept from one look to the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mlp_hub.domain.jobs.stages import StageTimes

if TYPE_CHECKING:
    from mlp_hub.executors.kubernetes.views import PodView

_SECOND = 1.0
"""Given: resolution of the cluster's times."""


def refined(now: PodView, before: PodView | None, clock: float) -> PodView:
    """Return a pod with its times as they were first seen; `before` is the same pod at the last look."""
    if before is not None and not now.made_at <= before.made_at <= now.made_at + _SECOND:
        before = None  # another one of that name
    return replace(
        now,
        made_at=_finer(now.made_at, None if before is None else before.made_at, clock) or 0.0,
        bound_at=_finer(now.bound_at, None if before is None else before.bound_at, clock),
        started_at=_finer(now.started_at, None if before is None else before.started_at, clock),
    )


def _finer(reported: float | None, before: float | None, clock: float) -> float | None:
    if reported is None:
        return before
    if before is not None and reported <= before <= reported + _SECOND:
        return before
    return clock if reported <= clock <= reported + _SECOND else reported + _SECOND / 2


def stages_of(
    pods: Sequence[PodView],
    ranks: int,
    started: float | None,
    first_line: float | None,
    containers: Mapping[int, float],
) -> StageTimes:
    """Tell when all pods of the ranks had come so far; once a rank runs, of those that had by then.

    `containers` are when those of ranks began as they say themselves: one that ends at once is quicker than the cluster.
    """
    ran = [*(pod.started_at for pod in pods if pod.rank not in containers), *containers.values()]
    return StageTimes(
        _all((pod.made_at for pod in pods), ranks, started),
        _all((pod.bound_at for pod in pods), ranks, started),
        _all(ran, ranks, started),
        first_line,
    )


def _all(reported: Iterable[float | None], ranks: int, started: float | None) -> float | None:
    times = [at for at in reported if at is not None]
    if started is None:
        return max(times) if times and len(times) >= ranks else None
    # a pod is told to run a moment after its rank says so, and clocks of nodes differ
    return max((min(at, started) for at in times if at <= started + _SECOND), default=None)

"""Human sentences for the timeline of a job."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Sequence

from mlp_hub.domain.job import Cause, Failure


def ranks_on(placement: Sequence[str]) -> str:
    """Say where ranks are: "on node a", "on nodes a (2) and b (1)"; empty when nobody knows."""
    if not placement:
        return "on no node yet"
    if len(set(placement)) == 1:
        return f"on node {placement[0]}"
    parts = [f"{node} ({n})" for node, n in Counter(placement).items()]
    if len(parts) > 8:
        parts = [*parts[:7], f"{len(parts) - 7} more"]
    return f"on nodes {', '.join(parts[:-1])} and {parts[-1]}"


def ended(failure: Failure) -> str:
    """Say how an attempt failed: "rank 1 failed with exit code 3"."""
    who = "the job" if failure.rank is None else f"rank {failure.rank}"
    match failure.cause:
        case Cause.PROGRAM_ERROR if failure.exit_code is not None:
            return f"{who} failed with exit code {failure.exit_code}"
        case Cause.SIGNAL if failure.signal is not None:
            return f"{who} was killed by signal {failure.signal} ({_name(failure.signal)})"
        case Cause.OUT_OF_MEMORY:
            return failure.message or f"{who} ran out of memory"
        case _:
            return failure.message or f"{who} ended: {failure.cause.value}"


def behind(position: int | None) -> str:
    """Say how many jobs are before this one in its tenant's queue."""
    ahead = (position or 1) - 1
    if ahead == 0:
        return "first in its queue"
    return f"queued behind {ahead} job" + ("s" if ahead != 1 else "")


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def took(seconds: float) -> str:
    """Return how long an attempt, or several, ran: to a tenth of a second below two minutes."""
    if seconds < 120:
        return f"{max(seconds, 0.0):.1f} s"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"

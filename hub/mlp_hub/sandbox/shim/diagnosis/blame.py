"""Search for the failed rank after a launcher killed all: it kills them for one, and does not report it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mlp_hub.sandbox.shim.diagnosis.messages import Said, msg

if TYPE_CHECKING:
    from mlp_hub.sandbox.shim.diagnosis.outcome import FirstFailure
    from mlp_hub.sandbox.shim.supervise import RankSupervisor

SHORTLY_S = 60.0
"""Tuning: seconds before a failure in which the end of another rank may be what it comes from."""
_KILL = 9


def aborter(sandbox: RankSupervisor) -> bool:
    """Blame the rank that had its launcher kill all, itself included; return whether there is one."""
    failure = sandbox.failure
    pattern = sandbox.plan["abort"] if sandbox.plan else None
    if failure is None or not pattern or (failure.rank is not None and failure.signal != _KILL):
        return False
    for rank in sandbox.ranks:
        if rank.streams and (found := re.search(pattern, rank.streams[1].tail, re.MULTILINE)):
            rank.end(int(found[1]) & 0xFF, None, excused=False)
            rank.state = "failed"  # also with 0
            rank.streams[1].forget_after(found.start())
            failure.become("program-error", rank.number, rank.code)
            # MPI_Abort may return, and the program come to its end, before the launcher has killed its rank
            failure.aborted = None if rank.raised else int(found[1])
            return True
    return False


def leaver(sandbox: RankSupervisor) -> None:
    """Blame the rank that ended well, as it seems, but not as its launcher wants it, for which that killed the others."""
    failure = sandbox.failure
    if failure is None or not failure.taken or failure.cause != "signal":
        return
    # who came to the end of its program has told so, and is none of them
    before = [
        rank
        for rank in sandbox.ranks
        if rank.state == "finished"
        and not rank.told_over
        and rank.over_at is not None
        and rank.over_at <= failure.at
    ]
    first = max(before, key=lambda rank: rank.over_at or 0.0, default=None)
    if first is None:
        return
    first.state = "failed"
    left = sum(rank.over_at is None or rank.over_at > (first.over_at or 0.0) for rank in sandbox.ranks)
    failure.become("program-error", first.number, first.code)
    failure.message = _left(
        msg("rank {n}", n=first.number), left, mpi=bool(sandbox.plan and sandbox.plan["abort"])
    )


def _left(who: Said, ranks: int, *, mpi: bool) -> Said:
    if mpi and ranks == 1:
        return msg("{who} ended without MPI_Finalize while another rank ran", who=who)
    if mpi:
        return msg("{who} ended without MPI_Finalize while {n} ranks ran", who=who, n=ranks)
    return msg("{who} ended, and the launcher ended the others ({n})", who=who, n=ranks)


def after(sandbox: RankSupervisor, failure: FirstFailure, what: str | Said) -> str | Said:
    """Return the message, with the addition that another rank ended well shortly before.

    The others can have missed that rank.
    """
    if failure.cause not in {"program-error", "signal"} or failure.rank is None or failure.message:
        return what
    ended = [
        rank
        for rank in sandbox.ranks
        if rank.number != failure.rank
        and rank.state == "finished"
        and rank.over_at is not None
        and 0 <= failure.at - rank.over_at <= SHORTLY_S
    ]
    first = min(ended, key=lambda rank: rank.over_at or 0.0, default=None)
    if first is None or first.over_at is None:
        return what
    return msg(
        "{what}; rank {n} had ended {seconds} s before, with exit status {code}",
        what=what,
        n=first.number,
        seconds=f"{failure.at - first.over_at:.1f}",
        code=first.code or 0,
    )

"""Remarks on running ranks: some have ended while others continue, or nothing happens."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from mlp_hub.sandbox.shim.diagnosis.messages import Said, msg

if TYPE_CHECKING:
    from mlp_hub.sandbox.shim.supervise import RankSupervisor

ENDED_S = 30.0
"""Tuning: seconds from a rank's end until it is told that others still run: ranks end together, more or less."""
QUIET_S = 60
"""Tuning: seconds without output and without use of the processor until that is told."""
IDLE = 0.01
"""Tuning: cores that all ranks together use at most while they are idle."""


class Remarks:
    """The remark that holds now, with when that began, for state.json; none for a rank that is alone."""

    def __init__(self, sandbox: RankSupervisor) -> None:
        self._sandbox = sandbox
        self._active_at = 0.0
        self._cpu: tuple[float, float] | None = None  # when it was looked at, and seconds
        self.now: dict[str, Any] | None = None

    def wrote(self) -> None:
        """Note that a rank has written."""
        self._active_at = time.monotonic()

    def look(self, now: float, cpu_s: float) -> bool:
        """Take what all ranks have used so far; return whether the remark is another one."""
        if self._cpu is None or cpu_s - self._cpu[1] > IDLE * (now - self._cpu[0]):
            self._active_at = now
        self._cpu = now, cpu_s
        said, since = self._remark(now)
        if said == (self.now or {}).get("said"):
            return False
        at = time.time() - (now - since)
        self.now = None if said is None else {"said": said, "at": at}
        return True

    def _remark(self, now: float) -> tuple[Said | None, float]:
        sandbox = self._sandbox
        workers = [rank for rank in sandbox.ranks if rank.role != "ps"]
        over = [rank for rank in workers if rank.over_at is not None]
        left = len(workers) - len(over)
        if len(sandbox.ranks) < 2 or sandbox.stopping or not left:
            return None, now
        quiet = now - self._active_at >= QUIET_S
        last = max((rank.over_at for rank in over if rank.over_at is not None), default=now)
        if not over or now - last < ENDED_S:
            return (_quiet() if quiet else None), self._active_at
        who = msg("rank {n}", n=over[0].number) if len(over) == 1 else msg("{n} ranks", n=len(over))
        if quiet:
            said = msg(
                "{who} ended; the others ({left}) have written nothing and used no processor for {n} s: perhaps they wait for it",
                who=who,
                left=left,
                n=QUIET_S,
            )
        else:
            said = msg("{who} ended; the others ({left}) still run", who=who, left=left)
        return said, last


def _quiet() -> Said:
    return msg(
        "no rank has written anything or used the processor for {n} s: perhaps they wait for each other",
        n=QUIET_S,
    )

"""An executor of simulated nodes: attempts end when their time is over, no process is started.

For trying a policy at scale and for tests. It keeps the same promises as the real executors: an attempt is
started at most once, `observe` is the truth, and with a journal it survives a restart of the hub. What an
attempt does is said by its environment (see `Script`). The clock is injected: with a virtual one the owner
calls `tick()` after moving it; with the real one the event loop does.
"""

from __future__ import annotations

import asyncio
import heapq
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import msgspec

from mlp_hub.domain.errors import Unavailable
from mlp_hub.domain.job import Failure, RankStatus
from mlp_hub.executors.base import (
    AttemptPhase,
    LaunchSpec,
    LogChunk,
    LogLine,
    NodeInfo,
    Observation,
    check_placement,
)
from mlp_hub.executors.fence import Fence, Fenced
from mlp_hub.executors.roles import roles_of
from mlp_hub.executors.simulated_attempt import DONE, Attempt, Script, from_json, to_json

MOST_ATTEMPTS = 500  # forgotten ones of one workspace, whose lines are remembered
MOST_LOGS = 1000


class SimulatedExecutor(Fenced):
    """Runs attempts in simulation on given nodes.

    `journal` (a file) makes what was started outlive the process; with `directories` each job gets its
    directory, as from the real executors, else nothing is written.
    """

    name = "simulated"

    def __init__(
        self,
        nodes: Sequence[NodeInfo],
        clock: Callable[[], float],
        *,
        journal: Path | None = None,
        real_time: bool = True,
        directories: bool = False,
    ) -> None:
        self._nodes = {n.name: n for n in nodes}
        self._clock = clock
        self._real_time = real_time
        self._directories = directories
        self.spools = directories
        self._attempts: dict[str, Attempt] = {}
        self._forgotten: set[str] = set()
        self._ended: dict[
            str, list[tuple[Attempt, float]]
        ] = {}  # forgotten, and when, by workspace: for their logs
        self._events: list[tuple[float, str]] = []
        self._callbacks: list[Callable[[str], None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._armed_for = 0.0
        self._journal = journal
        self._fence = Fence(None if journal is None else journal.parent)
        self.starts: list[str] = []  # every attempt that was really started, in order
        self.failing_starts = 0  # so many of the next starts fail, for tests
        self._out: TextIO | None = None
        if journal is not None and journal.exists():
            self._replay(journal)

    def nodes(self) -> Sequence[NodeInfo]:
        """List the simulated nodes."""
        return list(self._nodes.values())

    def lacks(self, runtime: str, home: str) -> str | None:
        """Nothing is missing: simulated ranks run no program."""
        del runtime, home
        return None

    async def start(self, spec: LaunchSpec, epoch: int = 0) -> None:
        """Begin the attempt unless it was ever begun or forgotten; `CannotStart` where its nodes are not ours."""
        with self._fence.acting(epoch):
            self._start(spec)

    def _start(self, spec: LaunchSpec) -> None:
        if spec.attempt in self._attempts or spec.attempt in self._forgotten:
            return
        check_placement(spec, self.nodes())
        if self.failing_starts > 0:
            self.failing_starts -= 1
            raise Unavailable("the simulated node does not answer")
        if self._directories:
            _make_directories(spec.workspace)
        attempt = Attempt(
            spec.attempt,
            spec.workspace,
            spec.placement or (next(iter(self._nodes)),) * spec.ranks,
            roles_of(spec.runtime, spec.workers, spec.ps),
            self._clock(),
            Script.of(spec.env),
            spec.time_limit,
        )
        self._record(start=to_json(attempt))
        self._begin(attempt)
        self._arm()

    async def stop(self, attempt: str, grace_s: float, epoch: int = 0) -> None:
        """End the attempt once its script lets it, at the latest after the grace."""
        with self._fence.acting(epoch):
            self._stop(attempt, grace_s)

    def _stop(self, attempt: str, grace_s: float) -> None:
        known = self._attempts.get(attempt)
        now = self._clock()
        if known is None or known.stopped_at is not None or known.phase(now) in DONE:
            return
        self._change(replace(known, stopped_at=now + min(known.script.stop, grace_s)))

    async def observe(self, attempts: Sequence[str]) -> Mapping[str, Observation]:
        """Tell how these attempts stand at the clock's time."""
        now = self._clock()
        return {a: self._observation(a, now) for a in attempts}

    async def known(self) -> Sequence[str]:
        """List the attempts that were started and not forgotten."""
        return list(self._attempts)

    async def forget(self, attempt: str, epoch: int = 0) -> None:
        """Drop the attempt; it cannot be started again."""
        with self._fence.acting(epoch):
            self._forget(attempt)

    def _forget(self, attempt: str) -> None:
        if attempt not in self._forgotten:
            self._forgotten.add(attempt)
            self._record(forget=attempt)
        known = self._attempts.pop(attempt, None)
        if known is not None:
            kept = self._ended.setdefault(known.workspace, [])
            kept.append((known, self._clock()))
            del kept[:-MOST_ATTEMPTS]
            while len(self._ended) > MOST_LOGS:
                del self._ended[next(iter(self._ended))]

    def read_log(self, workspace: str, rank: int, since: int = 0, limit: int = 1000) -> LogChunk:
        """Return one line for each thing that happened to the rank; the cursor counts lines."""
        part = tuple(self._lines(workspace, rank)[since : since + limit])
        return LogChunk(rank, part, since + len(part))

    def tail_log(self, workspace: str, rank: int, count: int) -> LogChunk:
        """Return the last `count` lines of a rank; `offset` is the cursor behind them."""
        lines = self._lines(workspace, rank)
        return LogChunk(rank, tuple(lines[-count:] if count else ()), len(lines))

    def _lines(self, workspace: str, rank: int) -> list[LogLine]:
        lines = [line for a, at in self._ended.get(workspace, ()) for r, line in a.log(at) if r == rank]
        for attempt in self._attempts.values():
            if attempt.workspace == workspace:
                lines += [line for r, line in attempt.log(self._clock()) if r == rank]
        return lines

    async def follow(self, workspace: str, ranks: int) -> AsyncIterator[LogChunk]:
        """Yield new lines as they come, until nobody listens."""
        cursors = [0] * ranks
        while True:
            for rank in range(ranks):
                chunk = self.read_log(workspace, rank, cursors[rank])
                cursors[rank] = chunk.offset
                if chunk.lines:
                    yield chunk
            await asyncio.sleep(0.1)

    def on_change(self, callback: Callable[[str], None]) -> None:
        """Call back with an attempt id when its time of change has come."""
        self._callbacks.append(callback)

    async def close(self) -> None:
        """Stop the timer; attempts go on by the clock."""
        self._callbacks.clear()
        if self._out is not None:
            self._out.close()
            self._out = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def tick(self) -> None:
        """Tell of all that happened up to the clock's time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = self._clock()
        while self._events and self._events[0][0] <= now:
            _, attempt = heapq.heappop(self._events)
            if attempt in self._attempts:
                for callback in self._callbacks:
                    callback(attempt)
        self._arm()

    def lose_node(self, name: str) -> None:
        """Take a node away with all that runs on it, as a power failure does."""
        now = self._clock()
        self._nodes[name] = replace(self._nodes[name], up=False)
        for attempt in list(self._attempts.values()):
            if name in attempt.placement and attempt.phase(now) not in DONE:
                self._change(replace(attempt, lost_at=now))

    def restore_node(self, name: str) -> None:
        """Bring a lost node back, empty."""
        self._nodes[name] = replace(self._nodes[name], up=True)

    def _begin(self, attempt: Attempt) -> None:
        self._attempts[attempt.id] = attempt
        self.starts.append(attempt.id)
        if attempt.runs_at > attempt.accepted_at:  # else who starts it sees it run
            heapq.heappush(self._events, (attempt.runs_at, attempt.id))
        heapq.heappush(self._events, (attempt.over_at, attempt.id))

    def _change(self, attempt: Attempt) -> None:
        self._record(change=to_json(attempt))
        self._attempts[attempt.id] = attempt
        heapq.heappush(self._events, (attempt.over_at, attempt.id))
        self._arm()

    def _arm(self) -> None:
        if not self._real_time or not self._callbacks:
            return
        if not self._events:
            return
        at = self._events[0][0]
        if self._timer is not None:
            if self._armed_for <= at:
                return
            self._timer.cancel()
        self._armed_for = at
        wait = max(0.0, at - self._clock())
        self._timer = asyncio.get_running_loop().call_later(wait, self.tick)

    def _observation(self, id_: str, now: float) -> Observation:
        a = self._attempts.get(id_)
        if a is None:
            return Observation(id_, AttemptPhase.ABSENT)
        phase = a.phase(now)
        failure = a.failure() if phase is AttemptPhase.FAILED else None
        ran = a.runs_at <= min(now, a.over_at)
        ranks = tuple(
            RankStatus(rank, role, node, *_rank_end(rank, phase, failure, ran=ran))
            for rank, (role, node) in enumerate(zip(a.roles, a.placement, strict=True))
        )
        ended = a.over_at if phase in DONE else None
        return Observation(id_, phase, a.runs_at if ran else None, ended, ranks, failure)

    def _record(self, **entry: Any) -> None:
        if self._journal is None:
            return
        if self._out is None:
            self._out = self._journal.open("a")
        self._out.write(msgspec.json.encode(entry).decode() + "\n")
        self._out.flush()  # the system has it: a crash of the hub does not undo it

    def _replay(self, journal: Path) -> None:
        for line in journal.read_text().splitlines():
            entry = msgspec.json.decode(line)
            if "start" in entry:
                self._begin(from_json(entry["start"]))
            elif "change" in entry:
                attempt = from_json(entry["change"])
                self._attempts[attempt.id] = attempt
                heapq.heappush(self._events, (attempt.over_at, attempt.id))
            else:
                self._forgotten.add(entry["forget"])
                self._attempts.pop(entry["forget"], None)


def _rank_end(
    rank: int, phase: AttemptPhase, failure: Failure | None, *, ran: bool
) -> tuple[str, int | None, int | None]:
    """Return the state, exit code and signal of a rank; one that only another, or a stop, ended is stopped."""
    if phase in (AttemptPhase.STARTING, AttemptPhase.RUNNING):
        return "running" if ran else "pending", None, None
    if phase is AttemptPhase.SUCCEEDED:
        return "finished", 0, None
    if phase is AttemptPhase.LOST:
        return "failed", None, None
    if failure is not None and failure.rank == rank:
        return "failed", failure.exit_code, failure.signal
    return "stopped", None, signal.SIGTERM if ran else None


def _make_directories(workspace: str) -> None:
    for part in ("ckpt", "log", "metrics", "code"):
        Path(workspace, part).mkdir(parents=True, exist_ok=True)

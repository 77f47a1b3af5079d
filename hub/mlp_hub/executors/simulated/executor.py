"""Executor of simulated nodes: attempts end when their time is over, and no process is started.

It is for trying a policy at scale and for tests. It keeps the same promises as the real executors.
An attempt is started at most once, `observe` is the truth, and with a journal it survives a restart
of the hub. The environment of an attempt defines its behaviour (see `Script`). The clock is
injected. With a virtual one the owner calls `tick()` after moving it. With the real one the event
loop does.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import signal
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import msgspec

from mlp_hub.domain.errors import Unavailable
from mlp_hub.domain.jobs.job import Failure, RankStatus
from mlp_hub.domain.runtime.runtime import roles_of
from mlp_hub.executors.base import (
    AttemptKey,
    AttemptPhase,
    AttemptWork,
    DiskUse,
    LaunchSpec,
    LogChunk,
    LogLine,
    Observation,
    TenantPlace,
    check_placement,
)
from mlp_hub.executors.following import follow
from mlp_hub.executors.node_use import NodeUse
from mlp_hub.executors.nodes import Condition, ConditionKind, NodeInfo, Taint
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.executors.shared_volume.fence import Fence, Fenced
from mlp_hub.executors.shared_volume.tenant_files import SharedVolumeTenantFiles
from mlp_hub.executors.shared_volume.workspace import SharedVolumeWorkspace
from mlp_hub.executors.simulated.attempt import DONE, Script, SimulatedAttempt, from_json, to_json
from mlp_hub.executors.workspace import Home, JobRun
from mlp_language.message import Message, msg

MOST_ATTEMPTS = 500
"""Safety: forgotten attempts of one run whose lines are remembered: bounds memory."""
MOST_LOGS = 1000
"""Safety: ended runs whose lines are remembered: bounds memory."""


class SimulatedExecutor(Fenced):
    """Runs attempts in simulation on given nodes.

    Users have their homes in `directories`. `journal` (a file) makes what was started outlive the process; who
    `makes_directories` gives each job its directory, as the real executors do, else nothing is written.
    """

    name = "simulated"
    keeps_tenants = False
    external_jobs = None
    environments = None
    images = False
    serves = True
    drains = True
    limits = True
    measures = True

    def __init__(
        self,
        nodes: Sequence[NodeInfo],
        clock: Callable[[], float],
        directories: Directories,
        *,
        journal: Path | None = None,
        real_time: bool = True,
        makes_directories: bool = False,
    ) -> None:
        self._nodes = {n.name: n for n in nodes}
        self._seen: tuple[NodeInfo, ...] = tuple(nodes)
        self._gone: set[str] = set()  # names of nodes that were taken away
        self._clock = clock
        self._real_time = real_time
        self._directories = directories
        self.makes_directories = makes_directories
        self._attempts: dict[str, SimulatedAttempt] = {}
        self._forgotten: set[str] = set()
        self._ended: dict[
            JobRun, list[tuple[SimulatedAttempt, float]]
        ] = {}  # forgotten, and when, by run: for their logs
        self._events: list[tuple[float, str]] = []
        self._callbacks: list[Callable[[str], None]] = []
        self._node_callbacks: list[Callable[[], None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._armed_for = 0.0
        self._journal = journal
        self._fence = Fence(None if journal is None else journal.parent)
        self.workspace = SharedVolumeWorkspace(
            directories,
            self._fence,
            measures=makes_directories,
            tenants=SharedVolumeTenantFiles(directories, self._fence),
        )
        self.starts: list[str] = []  # every attempt that was really started, in order
        self.failing_starts = 0  # so many of the next starts fail, for tests
        self._out: TextIO | None = None
        if journal is not None and journal.exists():
            self._replay(journal.read_text(errors="replace"))

    async def fence(self, epoch: int, wait_s: float) -> None:
        """Refuse older epochs from now on, and know what was done under them."""
        await super().fence(epoch, wait_s)
        if self._journal is not None and self._journal.exists():
            for known in (self._attempts, self._forgotten, self._events, self.starts):
                known.clear()
            self._replay(await asyncio.to_thread(self._journal.read_text, errors="replace"))
            self._arm()

    async def open(self) -> None:
        """Do nothing: the nodes are given, and the journal is read."""

    def nodes(self) -> Sequence[NodeInfo]:
        """List the simulated nodes."""
        return self._seen

    def on_nodes(self, callback: Callable[[], None]) -> None:
        """Call back when a node has come, gone or changed."""
        self._node_callbacks.append(callback)

    @property
    def cluster_calls(self) -> Mapping[str, int]:
        """Return nothing, without a cluster."""
        return {}

    def namespace_of(self, tenant: str) -> str:
        """Return nothing, without a cluster."""
        del tenant
        return ""

    async def node_use(self, *, known: bool = False) -> Sequence[NodeUse]:
        """Return nothing: simulated nodes use nothing."""
        del known
        return ()

    def trouble(self) -> Message | None:
        """Say nothing: it is this machine."""
        return None

    async def lacks(self, package: str, user: str) -> bool:
        """Nothing is missing: simulated ranks run no program."""
        del package, user
        return False

    async def keep_tenants(self, tenants: Sequence[TenantPlace], epoch: int = 0) -> None:
        """Do nothing: tenants need no separate place here."""

    async def keep_images(self, used: Sequence[str], epoch: int = 0) -> None:
        """Do nothing: nothing here has an image."""

    async def start(self, spec: LaunchSpec, epoch: int = 0) -> None:
        """Begin the attempt unless it was ever begun or forgotten; `CannotStart` where its nodes are not ours."""
        if self.makes_directories:
            await asyncio.to_thread(self._make_directories, spec)
        with self._fence.acting(epoch):
            self._start(spec)

    def _make_directories(self, spec: LaunchSpec) -> None:
        with self._directories.using(spec.of_run, write=True) as workspace:
            for part in ("ckpt", "log", "metrics", "code"):
                (workspace / part).mkdir(parents=True, exist_ok=True)

    def _start(self, spec: LaunchSpec) -> None:
        if spec.attempt in self._attempts or spec.attempt in self._forgotten:
            return
        check_placement(spec, (*self._nodes, *self._gone))
        if self.failing_starts > 0:
            self.failing_starts -= 1
            raise Unavailable(msg("the simulated node does not answer"))
        attempt = SimulatedAttempt(
            spec.attempt,
            spec.of_run,
            spec.placement or (next(iter(self._nodes)),) * spec.ranks,
            roles_of(spec.runtime, spec.workers, spec.ps),
            self._clock(),
            Script.from_env(spec.env),
            spec.time_limit,
            lost_at=None if all(map(self._is_there, spec.placement)) else self._clock(),
        )
        self._record(start=to_json(attempt))
        self._begin(attempt)
        self._arm()

    async def disk_use(self, whose: Collection[str | Home]) -> Mapping[str | Home, DiskUse]:
        """Tell of nothing: simulated ranks write nothing, and no server runs on simulated nodes."""
        return dict.fromkeys(whose, DiskUse())

    async def work_of(self, attempts: Collection[str]) -> Mapping[str, AttemptWork]:
        """Return what the scripts of running attempts say."""
        known = [a for id_ in attempts if (a := self._attempts.get(id_)) is not None]
        now = self._clock()
        running = [a for a in known if a.phase(now) is AttemptPhase.RUNNING]
        return {a.id: AttemptWork(a.script.gpu, a.script.cpu, a.script.gpu_reported) for a in running}

    def address(self, attempt: str) -> str:  # noqa: ARG002
        """Return an empty address: a simulated program answers nobody."""
        return ""

    async def collect(self, attempt: AttemptKey, epoch: int = 0) -> None:
        """Do nothing: output of ranks is available as long as the attempt is remembered."""

    async def stop(
        self, attempt: str, grace_s: float, epoch: int = 0, failure: Failure | None = None
    ) -> None:
        """End the attempt once its script lets it, at the latest after the grace."""
        del failure  # who is stopped for one has written to a disk
        with self._fence.acting(epoch):
            self._stop(attempt, grace_s)

    def _stop(self, attempt: str, grace_s: float) -> None:
        known = self._attempts.get(attempt)
        now = self._clock()
        if known is None or known.stopped_at is not None or known.phase(now) in DONE or known.script.deaf:
            return
        self._change(replace(known, stopped_at=now + min(known.script.stop, grace_s)))

    async def kill(self, attempt: str, epoch: int = 0, failure: Failure | None = None) -> None:
        """End the attempt, whatever its script says."""
        del failure
        with self._fence.acting(epoch):
            known, now = self._attempts.get(attempt), self._clock()
            if known is not None and known.phase(now) not in DONE:
                self._change(replace(known, stopped_at=now))

    async def limit(self, attempt: str, time_limit: float | None, epoch: int = 0) -> None:
        """Let the attempt end by the new limit, unless it is over."""
        with self._fence.acting(epoch):
            known, now = self._attempts.get(attempt), self._clock()
            if known is None or known.phase(now) in DONE or known.time_limit == time_limit:
                return
            self._change(replace(known, time_limit=time_limit))

    async def observe(self, attempts: Sequence[str]) -> Mapping[str, Observation]:
        """Return the state of these attempts at the clock's time."""
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
            kept = self._ended.setdefault(known.of, [])
            kept.append((known, self._clock()))
            del kept[:-MOST_ATTEMPTS]
            while len(self._ended) > MOST_LOGS:
                del self._ended[next(iter(self._ended))]

    async def read_log(
        self, attempt: AttemptKey, rank: int, since: int = 0, limit: int = 1000, until: int | None = None
    ) -> LogChunk:
        """Return one line for each thing that happened to the rank; the cursor counts lines."""
        part = tuple(self._lines(attempt, rank)[since:until][:limit])
        return LogChunk(rank, part, since + len(part))

    async def tail_log(
        self, attempt: AttemptKey, rank: int, count: int, until: int | None = None
    ) -> LogChunk:
        """Return the last `count` lines of a rank, up to a cursor; `offset` is the one behind them."""
        lines = self._lines(attempt, rank)[:until]
        return LogChunk(rank, tuple(lines[-count:] if count else ()), len(lines))

    async def read_new(
        self, attempt: AttemptKey, cursors: Mapping[int, int], limit: int = 1000
    ) -> Sequence[LogChunk]:
        """Return the new lines of each of these ranks that has some."""
        chunks = [await self.read_log(attempt, rank, since, limit) for rank, since in cursors.items()]
        return [chunk for chunk in chunks if chunk.lines]

    def follow_log(
        self, attempt: AttemptKey, cursors: Mapping[int, int], limit: int = 1000
    ) -> AsyncGenerator[Sequence[LogChunk], None]:
        """Look again and again: only the clock says when a line is there."""
        return follow(lambda at: self.read_new(attempt, at, limit), cursors, limit)

    def _lines(self, attempt: AttemptKey, rank: int) -> list[LogLine]:
        lines = [line for a, at in self._ended.get(attempt.of, ()) for r, line in a.log(at) if r == rank]
        now = self._attempts.get(attempt.id)
        return lines if now is None else lines + [line for r, line in now.log(self._clock()) if r == rank]

    def on_change(self, callback: Callable[[str], None]) -> None:
        """Call back with an attempt id when its time of change has come."""
        self._callbacks.append(callback)

    async def close(self) -> None:
        """Stop the timer; attempts continue by the clock."""
        self._callbacks.clear()
        self._node_callbacks.clear()
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

    # -- what happens to nodes

    def set_node(self, node: NodeInfo) -> None:
        """Add a node, or change the one of that name: its amounts, labels, taints, conditions."""
        self._gone.discard(node.name)
        self._nodes[node.name] = node
        self._nodes_changed()

    def taint(self, name: str, *taints: Taint) -> None:
        """Give a node these taints in place of those that it has."""
        self.set_node(replace(self._nodes[name], taints=taints))

    def cordon(self, name: str, message: str = "cordoned") -> None:
        """Let a node take no new ranks."""
        self.set_node(replace(self._nodes[name], conditions=(Condition(ConditionKind.CORDONED, message),)))

    def restore_node(self, name: str) -> None:
        """Let nothing be wrong with a node any more; one that was lost is empty."""
        self.set_node(replace(self._nodes[name], conditions=()))

    def lose_node(self, name: str) -> None:
        """Take a node down with all that runs on it, as a power failure does."""
        down = Condition(ConditionKind.NOT_READY, "it does not answer")
        self.set_node(replace(self._nodes[name], conditions=(down,)))
        self._lose_attempts(name)

    def remove_node(self, name: str) -> None:
        """Take a node away for good, with all that runs on it."""
        del self._nodes[name]
        self._gone.add(name)
        self._nodes_changed()
        self._lose_attempts(name)

    def _lose_attempts(self, node: str) -> None:
        now = self._clock()
        for attempt in list(self._attempts.values()):
            if node in attempt.placement and attempt.phase(now) not in DONE:
                self._change(replace(attempt, lost_at=now))

    def _is_there(self, node: str) -> bool:
        return node in self._nodes and self._nodes[node].ready

    def _nodes_changed(self) -> None:
        self._seen = tuple(self._nodes.values())
        for callback in self._node_callbacks:
            callback()

    def _begin(self, attempt: SimulatedAttempt) -> None:
        self._attempts[attempt.id] = attempt
        self.starts.append(attempt.id)
        if attempt.runs_at > attempt.accepted_at:  # else who starts it sees it run
            heapq.heappush(self._events, (attempt.runs_at, attempt.id))
        heapq.heappush(self._events, (attempt.over_at, attempt.id))

    def _change(self, attempt: SimulatedAttempt) -> None:
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
            return Observation(id_, AttemptPhase.ABSENT, leaves=self.makes_directories)
        phase = a.phase(now)
        failure = a.failure() if phase is AttemptPhase.FAILED else None
        ran = a.runs_at <= min(now, a.over_at)
        ranks = tuple(
            RankStatus(
                *(rank, role, node, *_rank_end(rank, phase, failure, ran=ran)),
                ram_peak=a.script.ram if phase in DONE else None,
            )
            for rank, (role, node) in enumerate(zip(a.roles, a.placement, strict=True))
        )
        ended = a.over_at if phase in DONE else None
        return Observation(
            id_,
            phase,
            a.runs_at if ran else None,
            ended,
            ranks,
            failure,
            a.script.lost_lines if phase in DONE else 0,
            leaves=self.makes_directories,
        )

    def _record(self, **entry: Any) -> None:
        if self._journal is None:
            return
        if self._out is None:
            self._out = self._journal.open("a")
        self._out.write(msgspec.json.encode(entry).decode() + "\n")
        self._out.flush()  # the system has it: a crash of the hub does not undo it

    def _replay(self, entries: str) -> None:
        for line in entries.splitlines():
            # what a power cut tore was nothing that ran: its attempt is absent, and the database decides
            with contextlib.suppress(msgspec.DecodeError, LookupError, TypeError, AttributeError):
                self._replay_one(msgspec.json.decode(line))

    def _replay_one(self, entry: dict[str, Any]) -> None:
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

"""Run of a scenario in virtual time on the scheduling core.

Within one instant: ends, then events, then submissions, then a plan. Jobs that a plan preempts are
queued again at once. The core plans once more, so that the victim can start elsewhere or gets the
reason for its wait. Lines come in the order of events; the `waiting` lines of an instant come last,
with one forecast for all of them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Protocol

from mlp_hub.domain.errors import Reason
from mlp_hub.scheduler.assign.feasible import Possible
from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.model.demand import Demand
from mlp_hub.scheduler.model.types import (
    Admit,
    Decision,
    PendingWorkload,
    Preempt,
    Resize,
    TenantQueue,
    Verdict,
    Wait,
)
from mlp_hub.scheduler.nodes.states import are_kept_for_tenants
from mlp_hub.simulate.foresight import Foresight
from mlp_hub.simulate.progress import Attempt, Run
from mlp_hub.simulate.report import Tally
from mlp_hub.simulate.scenario import (
    Cancel,
    Event,
    JobLine,
    NodeDown,
    NodeUp,
    QuotaChange,
    Scenario,
    Submission,
    changed,
)

Line = dict[str, Any]

MOST_ROUNDS = 50
"""Most plans within one instant; the core does not run in circles, and if it did, time would continue."""

MOST_IDLE_WAKES = 100
"""So often may the core ask in a row to be woken without deciding anything, when nothing else will happen."""

MOST_SHAPES = 64
"""Of what is typical; rarer shapes weigh too little to be worth their time."""


class Recorder(Protocol):
    """Recorder of holdings, for a chart."""

    def holds(self, job: str, line: JobLine, placement: tuple[str, ...], start: float, end: float) -> None:
        """Note that a job had these nodes, one entry for each rank, from start to end."""

    def capacity(self, node: str, *, up: bool, at: float) -> None:
        """Note that a node went down or came back."""


class Simulation:
    """One run of a scenario. `lines()` yields its lines, the last one the summary; `tally` has the figures.

    `clock` measures cycles, in seconds; without one their times are null. Nothing else depends on it.
    """

    def __init__(
        self,
        scenario: Scenario,
        clock: Callable[[], float] | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        self.scenario = scenario
        self.tally = Tally(scenario)
        self.now = 0.0
        self._clock = clock
        self._recorder = recorder
        self._tenants = {t.name: t for t in scenario.tenants}
        self._core = Core(scenario.policy, scenario.nodes, scenario.tenants, typical_of(scenario))
        self._core.set_bookings(scenario.bookings)
        self._submissions = scenario.submissions()
        self._next_submission: Submission | None = next(self._submissions, None)
        self._events: list[Event] = list(reversed(scenario.events))
        self._calendar: list[tuple[float, str, int]] = []  # (time, uid, version) of ends
        self._wake: float | None = None
        self._idle_wakes = 0
        self._foresight = Foresight()
        self._runs: dict[str, Run] = {}  # what was submitted and has not ended
        self._by_name: dict[str, Run] = {}
        self._cancelled_before: set[str] = set()
        self._possible: Possible | None = None  # until a quota changes
        self._checked: dict[tuple[object, ...], Verdict | None] = {}  # by it
        self._down: set[str] = set()
        self._serial = 0
        self._running = 0  # of the runs
        self._lines: list[Line] = []
        self._waits: dict[str, Wait | None] = {}  # None: nothing that it was not told yet

    def lines(self) -> Iterator[Line]:
        """Run it, yielding one line after another."""
        until = self.scenario.until
        while (at := self._next_time()) is not None and (until is None or at <= until):
            self.now = at
            self._foresight.earn_instant()
            self._ends()
            self._happenings()
            self._submit()
            self._plan()
            self._emit_waits()
            self.tally.settle(at)
            yield from self._lines
            self._lines.clear()
        self._close(until)
        yield {"summary": self.tally.summary()}

    def _next_time(self) -> float | None:
        while self._calendar and not self._is_current(self._calendar[0]):
            heapq.heappop(self._calendar)
        times = [e[0] for e in self._calendar[:1]] + [e.at for e in self._events[-1:]]
        if self._next_submission is not None:
            times.append(self._next_submission.at)
        if self._wake is not None and len(self._runs) > self._running:
            if not times:
                self._idle_wakes += 1
            if times or self._idle_wakes <= MOST_IDLE_WAKES:
                times.append(self._wake)
        return max(min(times), self.now) if times else None

    def _is_current(self, entry: tuple[float, str, int]) -> bool:
        run = self._runs.get(entry[1])
        return run is not None and run.attempt is not None and run.version == entry[2]

    # --- what happens by itself

    def _ends(self) -> None:
        while self._calendar and self._calendar[0][0] <= self.now:
            entry = heapq.heappop(self._calendar)
            if not self._is_current(entry):
                continue
            run = self._runs[entry[1]]
            attempt = run.attempt
            assert attempt is not None  # noqa: S101 - current ends are those of attempts
            at_limit = run.line.time_limit is not None and attempt.end() > self.now
            self._stop(run)
            self._core.end(run.uid, self.now)
            if at_limit:
                limit, needs = run.line.time_limit, attempt.end() - attempt.started
                message = f"ran into its time limit of {limit:g} s; it needs {needs:g} s"
                self._emit("failed", run, reason="TimeLimit", message=message)
            else:
                self._emit("finished", run)
            self._over(run, "failed" if at_limit else "finished")

    def _happenings(self) -> None:
        while self._events and self._events[-1].at <= self.now:
            match self._events.pop():
                case NodeDown(_, node):
                    self._node_down(node)
                case NodeUp(_, node):
                    self._node_up(node)
                case QuotaChange(_, tenant, quota):
                    before = self._tenants[tenant]
                    self._set_tenant(replace(before, quota=changed(before.quota, quota)))
                case Cancel(_, job):
                    self._cancel(job)

    def _node_down(self, node: str) -> None:
        if node in self._down:
            return
        self._down.add(node)
        self._core.set_node(node, up=False)
        self.tally.node(node, up=False, now=self.now)
        if self._recorder:
            self._recorder.capacity(node, up=False, at=self.now)
        for run in sorted((r for r in self._runs.values() if node in r.placement), key=lambda r: r.uid):
            attempt = self._stop(run)
            self.tally.lost(attempt.lost())
            self._core.end(run.uid, self.now)
            message = (
                f"node {node} was lost; all its workers ({attempt.workers}) stop, and start again together"
            )
            self.tally.counts["evicted"] += 1
            self._emit("evicted", run, reason="NodeLost", message=message)
            self._requeue(run, attempt)

    def _node_up(self, node: str) -> None:
        if node not in self._down:
            return
        self._down.discard(node)
        self._core.set_node(node, up=True)
        self.tally.node(node, up=True, now=self.now)
        if self._recorder:
            self._recorder.capacity(node, up=True, at=self.now)

    def _set_tenant(self, tenant: TenantQueue) -> None:
        self._tenants[tenant.name] = tenant
        self._possible = None
        self._checked.clear()
        self._core.set_tenant(tenant)

    def _cancel(self, name: str) -> None:
        run = self._by_name.get(name)
        if run is None:
            self._cancelled_before.add(name)  # of a job that has ended this means nothing
            return
        if run.attempt is not None:
            self._stop(run)
            self._core.end(run.uid, self.now)
        else:
            self._core.withdraw(run.uid)
            self._stops_waiting(run)
        self._emit("cancelled", run)
        self._over(run, "cancelled")

    def _submit(self) -> None:
        while (it := self._next_submission) is not None and it.at <= self.now:
            self._next_submission = next(self._submissions, None)
            self._serial += 1
            # the order of uids is the order of submission, which the core falls back on where all else is equal
            run = Run(f"{self._serial:08d}", it.name, it.line, self.now, self.now)
            self.tally.submitted(run, self.now)
            self._emit("submitted", run)
            if (verdict := self._check(run)) is not None:
                self._emit("refused", run, reason=str(verdict.reason), message=str(verdict.headline))
                self._over(run, "refused")
            elif it.name in self._cancelled_before:
                self._emit("cancelled", run)
                self._over(run, "cancelled")
            else:
                self._runs[run.uid] = self._by_name[run.name] = run
                self._core.submit(self._waiting(run))

    def _check(self, run: Run) -> Verdict | None:
        line = run.line
        shape = (line.tenant, line.per_worker, line.workers_min, line.gpu_kind, line.topology)
        if shape not in self._checked:
            if self._possible is None:
                self._possible = Possible.from_nodes(self.scenario.nodes, tuple(self._tenants.values()))
            self._checked[shape] = self._possible.check(self._waiting(run))
        return self._checked[shape]

    # --- what the core decides

    def _plan(self) -> None:
        for _ in range(MOST_ROUNDS):
            decisions = self._timed_plan()
            preempted = False
            for decision in decisions:
                run = self._runs[decision.uid]
                if isinstance(decision, Wait):
                    self._waits[run.uid] = decision
                    continue
                self._idle_wakes = 0
                if isinstance(decision, Preempt):
                    self._preempt(run, decision)
                    preempted = True
                elif isinstance(decision, Admit):
                    self._start(run, decision)
                else:
                    self._resize(run, decision)
            if not preempted:
                break
        self._wake = self._core.next_wake()
        if self._wake is not None and self._wake <= self.now:
            self._wake = None

    def _hears(self, uid: str, reason: Reason) -> bool:
        """Return whether a reason is new for a job; its earlier reasons of this instant are out of date."""
        is_new = str(reason) in self._runs[uid].told
        if is_new:
            self._waits[uid] = None
        else:
            self._waits.setdefault(uid, None)  # its place in the order
        return not is_new

    def _timed_plan(self) -> list[Decision]:
        effort = self._core.state.effort
        began = None if self._clock is None else self._clock()
        decisions = self._core.plan(self.now, self._hears)
        self.tally.cycle(None if self._clock is None or began is None else self._clock() - began)
        self._foresight.earn(self._core.state.effort - effort)
        return decisions

    def _start(self, run: Run, admit: Admit) -> None:
        self._stops_waiting(run)
        cost = self.scenario.policy.restart_cost_s if run.starts else 0.0
        run.starts += 1
        self._running += 1
        run.attempt = Attempt.start(run.line, self.now, admit.workers, run.kept, cost)
        self._place(run, admit.placement)
        self._emit("admitted", run)
        self._emit("started", run, placement=_by_rank(run.placement))
        self._schedule_end(run)

    def _resize(self, run: Run, resize: Resize) -> None:
        attempt = run.attempt
        assert attempt is not None  # noqa: S101 - the core resizes what runs
        event = "grown" if resize.workers > attempt.workers else "shrunk"
        attempt.resize(self.now, resize.workers)
        self._unplace(run)
        self._place(run, resize.placement)
        self._emit(event, run, placement=_by_rank(run.placement))
        self._schedule_end(run)

    def _preempt(self, run: Run, preempt: Preempt) -> None:
        attempt = self._stop(run)
        self.tally.preempted(run)
        self.tally.lost(attempt.lost())
        verdict = preempt.verdict
        self._emit("preempted", run, reason=str(verdict.reason), message=str(verdict.headline))
        self._requeue(run, attempt)

    def _requeue(self, run: Run, attempt: Attempt) -> None:
        """Queue a job again that was stopped: with its age, and the work that its last checkpoint kept."""
        run.kept = attempt.kept
        run.waiting_since = self.now
        self._emit("requeued", run)
        self._core.submit(self._waiting(run))

    def _emit_waits(self) -> None:
        """Say why jobs wait: of each wait every reason once, because in a crowd they go back and forth at each event."""
        new = [
            (run, wait.verdict)
            for uid, wait in self._waits.items()
            if wait is not None and (run := self._runs.get(uid)) is not None and run.attempt is None
        ]
        self._waits.clear()
        if not new:
            return
        expected = self._forecast([run.uid for run, _ in new])
        for run, verdict in new:
            reason = str(verdict.reason)
            run.told.add(reason)
            self._emit(
                "waiting",
                run,
                reason=reason,
                message=str(verdict.headline),
                expected_start=expected.get(run.uid),
            )

    def _forecast(self, uids: list[str]) -> dict[str, float | None]:
        return self._foresight.foresee_starts(
            self._core, self.now, uids, len(self._runs) + len(self.scenario.nodes)
        )

    # --- bookkeeping

    def _waiting(self, run: Run) -> PendingWorkload:
        return run.as_waiting(
            self.scenario.priorities[run.line.priority], self.scenario.policy.restart_cost_s
        )

    def _place(self, run: Run, placement: tuple[str, ...]) -> None:
        run.placement, run.placed_at = placement, self.now
        self.tally.takes(run, len(placement), self.now)

    def _unplace(self, run: Run) -> None:
        self.tally.gives(run, len(run.placement), self.now)
        if self._recorder and self.now > run.placed_at:
            self._recorder.holds(run.name, run.line, run.placement, run.placed_at, self.now)
        run.placement = ()

    def _stop(self, run: Run) -> Attempt:
        """End an attempt: its holdings are given back, its work is counted up to now."""
        attempt = run.attempt
        assert attempt is not None  # noqa: S101 - only what runs is stopped
        attempt.advance(self.now)
        self._unplace(run)
        run.attempt = None
        run.version += 1
        self._running -= 1
        return attempt

    def _stops_waiting(self, run: Run) -> None:
        run.waited += self.now - run.waiting_since
        run.told.clear()

    def _over(self, run: Run, state: str) -> None:
        """Forget a job; `tally` keeps its figures."""
        self._runs.pop(run.uid, None)
        self._by_name.pop(run.name, None)
        self.tally.over(run, self.now, state)

    def _schedule_end(self, run: Run) -> None:
        attempt = run.attempt
        assert attempt is not None  # noqa: S101 - asked for when it starts or is resized
        end = attempt.end()
        if run.line.time_limit is not None:
            end = min(end, attempt.started + run.line.time_limit)
        run.version += 1
        heapq.heappush(self._calendar, (max(end, self.now), run.uid, run.version))

    def _emit(self, event: str, run: Run, **more: Any) -> None:
        self._lines.append({"t": self.now, "event": event, "job": run.name, **more})

    def _close(self, until: float | None) -> None:
        """Count what still runs or waits when the run stops."""
        for run in list(self._runs.values()):
            if until is not None:
                self.now = max(self.now, until)
            if run.attempt is not None:
                self._unplace(run)
            else:
                self._stops_waiting(run)
            self.tally.unfinished(run)
        self.tally.close(self.now, stopped=bool(self._runs) and until is not None)


def typical_of(scenario: Scenario) -> tuple[tuple[Demand, float], ...]:
    """Return what is asked for in the scenario, the most popular shapes that make up 95 %, each with its share.

    As in FGD (Weng et al., USENIX ATC 2023), where they are known from the past.
    """
    shapes: dict[Demand, int] = {}
    tainted = are_kept_for_tenants(scenario.nodes)
    for line in scenario.jobs:
        demand = Demand.from_resources(line.per_worker, line.gpu_kind, line.tenant if tainted else None)
        shapes[demand] = shapes.get(demand, 0) + line.count * line.workers_max
    total = sum(shapes.values())
    kept: list[tuple[Demand, int]] = []
    covered = 0
    for demand, n in sorted(shapes.items(), key=lambda item: -item[1])[:MOST_SHAPES]:
        if covered >= 0.95 * total:
            break
        kept.append((demand, n))
        covered += n
    return tuple((demand, n / covered) for demand, n in kept)


def _by_rank(placement: tuple[str, ...]) -> dict[str, str]:
    return {str(rank): node for rank, node in enumerate(placement)}

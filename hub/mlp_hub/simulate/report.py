"""Result of a run: the summary line, and the tables for people.

Times are seconds of virtual time. A job's wait is all the time that it spent in the queue, also
after a preemption; waits are those of jobs that started at least once. Job completion time (jct) is
from submission to finish, of finished jobs. The makespan is from the first submission to the last
end of a job (or to `until`, if that cut it short). Utilization is the amount held over that time,
by the capacity of the nodes that were up; allocation is the highest share held at one time.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlp_hub.domain.resources import MILLI
from mlp_hub.simulate.progress import Run
from mlp_hub.simulate.scenario import Scenario

MOST_ROWS = 40
"""So many jobs are listed one by one at most."""


@dataclass(slots=True)
class Group:
    """The figures of some jobs: of a tenant, of a class of priority, or of all."""

    jobs: int = 0
    finished: int = 0
    preemptions: int = 0
    cpu: float = 0.0  # thousandths x seconds
    gpu: float = 0.0
    waits: array[float] = field(default_factory=lambda: array("d"))
    jct: float = 0.0

    def waited(self, run: Run) -> None:
        """Count the wait of a job that started."""
        if run.starts:
            self.waits.append(run.waited)

    def figures(self) -> dict[str, Any]:
        """Return the figures as the summary has them."""
        waits = sorted(self.waits)
        return {
            "jobs": self.jobs,
            "finished": self.finished,
            "avg_jct_s": _round(self.jct / self.finished) if self.finished else 0.0,
            "avg_wait_s": _round(sum(waits) / len(waits)) if waits else 0.0,
            "p50_wait_s": _round(percentile(waits, 0.5)),
            "p99_wait_s": _round(percentile(waits, 0.99)),
            "preemptions": self.preemptions,
        }


@dataclass(slots=True)
class _Meter:
    """Amount held of one dimension, and its capacity, over time (thousandths)."""

    there: int = 0
    held: int = 0
    held_s: float = 0.0
    there_s: float = 0.0
    highest: float = 0.0

    def advance(self, span: float) -> None:
        self.held_s += self.held * span
        self.there_s += self.there * span


@dataclass(slots=True)
class Ended:
    """A job for the list of jobs."""

    name: str
    tenant: str
    state: str
    submitted: float
    waited: float
    starts: int
    ended: float | None


class Tally:
    """Adds up a run as the engine goes; its memory is three numbers for each job."""

    def __init__(self, scenario: Scenario) -> None:
        self.all = Group()
        self.tenants = {t.name: Group() for t in scenario.tenants}
        self.priorities = {name: Group() for name in scenario.priorities}
        self.lost_work = 0.0
        self.few: list[Ended] = []  # the first jobs that ended, for the list
        self.counts = dict.fromkeys(("refused", "failed", "cancelled", "evicted"), 0)
        self._nodes = {n.name: n.capacity for n in scenario.nodes}
        self._cpu = _Meter(sum(n.cpu for n in self._nodes.values()))
        self._gpu = _Meter(sum(n.gpu for n in self._nodes.values()))
        self._first: float | None = None
        self._now = 0.0
        self._last_end = 0.0
        self._at_last_end = (0.0, 0.0, 0.0, 0.0)
        self._cycles = 0
        self._cycle_s = array("d")

    # --- told by the engine

    def submitted(self, run: Run, now: float) -> None:
        """Count a job; time counts from the first one."""
        if self._first is None:
            self._first = self._now = self._last_end = now
        for group in self._groups(run):
            group.jobs += 1

    def takes(self, run: Run, workers: int, now: float) -> None:
        """Note that a job holds this from now on."""
        self._advance(now)
        self._cpu.held += run.line.per_worker.cpu * workers
        self._gpu.held += run.line.per_worker.gpu * workers

    def gives(self, run: Run, workers: int, now: float) -> None:
        """Note that it gives that back, which it held since it was placed."""
        self._advance(now)
        each = run.line.per_worker
        self._cpu.held -= each.cpu * workers
        self._gpu.held -= each.gpu * workers
        span = now - run.placed_at
        for group in self._groups(run):
            group.cpu += each.cpu * workers * span
            group.gpu += each.gpu * workers * span

    def node(self, name: str, *, up: bool, now: float) -> None:
        """Note that a node went down or came back."""
        self._advance(now)
        sign = 1 if up else -1
        self._cpu.there += sign * self._nodes[name].cpu
        self._gpu.there += sign * self._nodes[name].gpu

    def settle(self, now: float) -> None:
        """Measure the holdings once all events of an instant have happened."""
        self._advance(now)
        for meter in (self._cpu, self._gpu):
            if meter.there:
                meter.highest = max(meter.highest, meter.held / meter.there)

    def preempted(self, run: Run) -> None:
        """Count a preemption, with the one who is stopped."""
        for group in self._groups(run):
            group.preemptions += 1

    def lost(self, worker_seconds: float) -> None:
        """Count work that has to be done again."""
        self.lost_work += worker_seconds

    def over(self, run: Run, now: float, state: str) -> None:
        """Count a job that ended."""
        for group in self._groups(run):
            group.waited(run)
            if state == "finished":
                group.finished += 1
                group.jct += now - run.submitted
        if state in self.counts:
            self.counts[state] += 1
        self._list(run, state, now)
        if run.starts:
            self._mark(now)

    def unfinished(self, run: Run) -> None:
        """Count a job that still waits or runs when the run stops."""
        for group in self._groups(run):
            group.waited(run)
        self._list(run, "running" if run.placement else "waiting", None)

    def cycle(self, seconds: float | None) -> None:
        """Count a cycle of the core, and its time where it was measured."""
        self._cycles += 1
        if seconds is not None:
            self._cycle_s.append(seconds)

    def close(self, now: float, *, stopped: bool) -> None:
        """End the run; `stopped`: with work left, so that its time goes to the very end."""
        if stopped and self._first is not None:
            self._advance(now)
            self._mark(now)

    # --- asked at the end

    def summary(self) -> dict[str, Any]:
        """Return the content of the summary line."""
        figures = self.all.figures()
        times = sorted(self._cycle_s)
        held_cpu, there_cpu, held_gpu, there_gpu = self._at_last_end
        return {
            "makespan_s": _round(self._last_end - (self._first or 0.0)),
            "jobs": figures.pop("jobs"),
            "finished": figures.pop("finished"),
            **{k: figures[k] for k in ("avg_jct_s", "avg_wait_s", "p50_wait_s", "p99_wait_s")},
            "utilization": {"cpu": _share(held_cpu, there_cpu), "gpu": _share(held_gpu, there_gpu)},
            "preemptions": self.all.preemptions,
            "lost_work_s": _round(self.lost_work),
            "per_tenant": {name: _of(group) for name, group in self.tenants.items()},
            "per_priority": {name: _of(group) for name, group in self.priorities.items() if group.jobs},
            "allocation": {"gpu": round(self._gpu.highest, 6), "cpu": round(self._cpu.highest, 6)},
            "cycles": self._cycles,
            "cycle_p50_ms": round(percentile(times, 0.5) * 1000, 3) if times else None,
            "cycle_p99_ms": round(percentile(times, 0.99) * 1000, 3) if times else None,
        }

    def _groups(self, run: Run) -> tuple[Group, Group, Group]:
        return self.all, self.tenants[run.line.tenant], self.priorities[run.line.priority]

    def _advance(self, now: float) -> None:
        if self._first is not None and now > self._now:
            self._cpu.advance(now - self._now)
            self._gpu.advance(now - self._now)
            self._now = now

    def _mark(self, now: float) -> None:
        """Remember the sums at the end of a job: the last such time ends the makespan."""
        self._last_end = now
        self._at_last_end = (self._cpu.held_s, self._cpu.there_s, self._gpu.held_s, self._gpu.there_s)

    def _list(self, run: Run, state: str, ended: float | None) -> None:
        if len(self.few) <= MOST_ROWS:
            line = run.line
            self.few.append(Ended(run.name, line.tenant, state, run.submitted, run.waited, run.starts, ended))


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the value below which a share of the ordered values lies, between two of them in proportion; 0 of none."""
    if not ordered:
        return 0.0
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def tables(tally: Tally) -> str:
    """Return the report as a person reads it."""
    s = tally.summary()
    others = ", ".join(f"{n} {what}" for what, n in tally.counts.items() if n)
    head = [
        ("jobs", f"{s['jobs']}, of them {s['finished']} finished" + (f", {others}" if others else "")),
        ("makespan", seconds(s["makespan_s"])),
        ("job completion time", f"{seconds(s['avg_jct_s'])} on average"),
        (
            "wait",
            (
                f"{seconds(s['avg_wait_s'])} on average, half within {seconds(s['p50_wait_s'])}, "
                f"99 % within {seconds(s['p99_wait_s'])}"
            ),
        ),
        ("utilization", _two(s["utilization"])),
        ("highest allocation", _two(s["allocation"])),
        ("preemptions", f"{s['preemptions']}, {s['lost_work_s']:g} worker-seconds of work lost"),
        ("cycles", _cycles(s)),
    ]
    parts = [aligned((), head)]
    for title, groups in (("tenant", s["per_tenant"]), ("priority", s["per_priority"])):
        if groups:
            parts.append(aligned((title, *_HEADS), (_row(name, g) for name, g in groups.items())))
    if 0 < len(tally.few) <= MOST_ROWS:
        heads = ("job", "tenant", "state", "submitted", "waited", "starts", "ended")
        parts.append(aligned(heads, (_job_row(job) for job in sorted(tally.few, key=_job_order))))
    return "\n\n".join(parts) + "\n"


_HEADS = ("jobs", "finished", "avg wait", "p50 wait", "p99 wait", "avg jct", "cpu h", "gpu h", "preempted")


def _row(name: str, g: dict[str, Any]) -> tuple[str, ...]:
    waits = (seconds(g[key]) for key in ("avg_wait_s", "p50_wait_s", "p99_wait_s", "avg_jct_s"))
    hours = (f"{g[key] / 3600:.2f}" for key in ("cpu_s", "gpu_s"))
    return (name, str(g["jobs"]), str(g["finished"]), *waits, *hours, str(g["preemptions"]))


def _job_row(job: Ended) -> tuple[str, ...]:
    times = (seconds(job.submitted), seconds(job.waited), str(job.starts))
    return (job.name, job.tenant, job.state, *times, "" if job.ended is None else seconds(job.ended))


def _job_order(job: Ended) -> tuple[float, str]:
    return job.submitted, job.name


def aligned(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Set rows in columns: the first to the left, those of numbers to the right."""
    lines = [tuple(heads), *map(tuple, rows)] if heads else [*map(tuple, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    right = [
        n > 0 and bool(heads) and all(not cell or cell[0].isdigit() for cell in column[1:])
        for n, column in enumerate(zip(*lines, strict=True))
    ]
    return "\n".join(
        "  ".join(
            cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    )


def seconds(span: float) -> str:
    """Write a time: "0.25 s", "90 s", "15 min 40 s", "2 h 05 min", "6 d 15 h"."""
    if span < 100:
        return f"{span:.3g} s"
    if round(span) < 600:
        return f"{span:.0f} s"
    if round(span) < 7200:
        minutes, rest = divmod(round(span), 60)
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(round(span / 60), 60)
    if hours < 48:
        return f"{hours} h {minutes:02d} min"
    days, hours = divmod(round(span / 3600), 24)
    return f"{days} d {hours:02d} h"


def _two(shares: dict[str, float]) -> str:
    return f"cpu {shares['cpu']:.1%}, gpu {shares['gpu']:.1%}"


def _cycles(s: dict[str, Any]) -> str:
    if s["cycle_p50_ms"] is None:
        return str(s["cycles"])
    return f"{s['cycles']}, half within {s['cycle_p50_ms']} ms, 99 % within {s['cycle_p99_ms']} ms"


def _of(group: Group) -> dict[str, Any]:
    return {
        **group.figures(),
        "cpu_s": _round(group.cpu / MILLI),
        "gpu_s": _round(group.gpu / MILLI),
    }


def _share(part: float, whole: float) -> float:
    return round(part / whole, 6) if whole else 0.0


def _round(value: float) -> float:
    """Round away what sums of floats leave behind."""
    return round(value, 6)

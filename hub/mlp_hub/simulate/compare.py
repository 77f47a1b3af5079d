"""Comparison of two runs of the same work: each tenant's waits and shares, and the jobs whose start moves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlp_hub.simulate.report import percentile
from mlp_hub.simulate.scenario import Scenario

MOST_MOVES = 50
MOVED_S = 1.0
"""A start that moves by less counts as unmoved."""


@dataclass(slots=True)
class Life:
    """Record of one job in a run; times in seconds of the run."""

    name: str
    tenant: str
    user: str
    length: float  # with all workers
    submitted: float
    began_running: bool = False  # it ran before the run began, and its wait is no part of this
    started: float | None = None
    finished: float | None = None
    refused: str | None = None
    waits: str | None = None  # why it does not start, as it was said last before it did
    reason: str | None = None  # the type of that
    again: float = 0.0  # what it waited after it was stopped for others, until it went on
    stopped: float | None = None  # it was stopped then, and waits again
    preemptions: int = 0

    def starts(self, at: float) -> None:
        """Note a start: the first, or the end of a wait after a stop."""
        if self.stopped is not None:
            self.again += at - self.stopped
            self.stopped = None
        if self.started is None:
            self.started = at

    def says(self, reason: str, message: str) -> None:
        """Note why it waits."""
        if self.started is None:
            self.reason, self.waits = reason, message


class Lives:
    """Follows the lines of a run."""

    def __init__(self, scenario: Scenario, before: dict[str, float] | None = None) -> None:
        """Store the scenario; `before` are the jobs that ran at its begin, with their submission.

        One of them that has lost its nodes by the tried changes waits again from then on.
        """
        self._lines = {line.job_name(i): line for line in scenario.jobs for i in range(line.count)}
        self._before = before or {}
        self.of: dict[str, Life] = {}

    def add_line(self, line: dict[str, Any]) -> None:
        """Take in one line."""
        event, name = line.get("event"), line.get("job", "")
        if event == "submitted":
            job = self._lines[name]
            life = Life(name, job.tenant, job.user, job.duration, self._before.get(name, line["t"]))
            life.began_running = name in self._before
            life.stopped = line["t"] if life.began_running else None
            self.of[name] = life
            return
        found = self.of.get(name)
        if found is None:
            return
        if event == "started":
            found.starts(line["t"])
        elif event == "finished":
            found.finished = line["t"]
        elif event == "refused":
            found.refused = line["message"]
        elif event == "waiting":
            found.says(line["reason"], line["message"])
        elif event in ("preempted", "evicted"):
            found.preemptions += event == "preempted"
            found.stopped = line["t"]


@dataclass(slots=True)
class _Sums:
    jobs: int = 0
    running: int = 0
    finished: int = 0
    refused: int = 0
    never_started: int = 0
    preemptions: int = 0
    again: float = 0.0
    waits: list[float] = field(default_factory=list)
    jct: list[float] = field(default_factory=list)
    unfair: list[float] = field(default_factory=list)


def figures(lives: Iterable[Life], summary: dict[str, Any], weights: dict[str, float]) -> dict[str, Any]:
    """Return the figures of one run, in all and per tenant.

    Share: a tenant's part of all use, of gpus if any were used, else of cores. Fair share: its part by
    weight among the tenants that had work. Finish-time fairness (Themis): the duration of a job,
    divided by its duration alone on its tenant's fair share of the machine. Above 1 the tenant was
    worse off than alone.
    """
    every = _Sums()
    by_tenant = {name: _Sums() for name in weights}
    lives = list(lives)
    active = {life.tenant for life in lives}
    all_weight = sum(max(weights[t], 1e-9) for t in active) or 1.0
    fair = {t: max(weights[t], 1e-9) / all_weight if t in active else 0.0 for t in weights}
    for life in lives:
        for sums in (every, by_tenant[life.tenant]):
            _count(sums, life, fair[life.tenant])
    used = {t: summary["per_tenant"][t] for t in weights}
    key = "gpu_s" if any(u["gpu_s"] for u in used.values()) else "cpu_s"
    whole = sum(u[key] for u in used.values())
    per_tenant = {}
    for name, sums in by_tenant.items():
        per_tenant[name] = _figures_of(sums) | {
            "cpu_h": round(used[name]["cpu_s"] / 3600, 6),
            "gpu_h": round(used[name]["gpu_s"] / 3600, 6),
            "share": round(used[name][key] / whole, 6) if whole else 0.0,
            "fair_share": round(fair[name], 6),
        }
    return {
        **_figures_of(every),
        "makespan_s": summary["makespan_s"],
        "utilization": summary["utilization"],
        "lost_work_s": summary["lost_work_s"],
        "per_tenant": per_tenant,
        "waits": _waits(lives),
    }


def _waits(lives: Iterable[Life]) -> list[dict[str, Any]]:
    """Return by reason how many jobs waited for it until they started, or wait for it in vain; the most first.

    Each job counts once, those that ran when the run began not at all: these are the jobs of the waits.
    """
    groups: dict[str, list[Life]] = {}
    for life in lives:
        if life.reason is not None and life.refused is None and not life.began_running:
            groups.setdefault(life.reason, []).append(life)
    found = []
    for reason, group in sorted(groups.items(), key=lambda g: (-len(g[1]), g[0])):
        # who waits longest shows best what binds
        shown = max(group, key=lambda life: (life.started is None, (life.started or 0.0) - life.submitted))
        found.append(
            {
                "reason": reason,
                "jobs": len(group),
                "never": sum(life.started is None for life in group),
                "job": shown.name.partition("/")[2] or shown.name,
                "user": shown.user,
                "message": shown.waits,
            }
        )
    return found


def _count(sums: _Sums, life: Life, fair: float) -> None:
    sums.jobs += 1
    sums.running += life.began_running
    sums.again += life.again
    sums.preemptions += life.preemptions
    if life.refused is not None:
        sums.refused += 1
    elif life.started is None:
        sums.never_started += 1
    elif not life.began_running:
        sums.waits.append(life.started - life.submitted + life.again)
    if life.finished is not None:
        took = life.finished - life.submitted
        sums.finished += 1
        sums.jct.append(took)
        if life.length > 0 and fair > 0:
            sums.unfair.append(took * fair / life.length)


def _figures_of(sums: _Sums) -> dict[str, Any]:
    waits = sorted(sums.waits)
    return {
        "jobs": sums.jobs,
        "running": sums.running,
        "waits_of": len(waits),
        "waited_again_s": round(sums.again, 3),
        "finished": sums.finished,
        "refused": sums.refused,
        "never_started": sums.never_started,
        "preemptions": sums.preemptions,
        "avg_wait_s": _mean(waits),
        "p50_wait_s": round(percentile(waits, 0.5), 3),
        "p99_wait_s": round(percentile(waits, 0.99), 3),
        "avg_jct_s": _mean(sums.jct),
        "ftf_avg": _mean(sums.unfair),
        "ftf_worst": round(max(sums.unfair, default=0.0), 3),
    }


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 3) if values else 0.0


def moves(before: dict[str, Life], after: dict[str, Life]) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return the jobs whose start moves most, and how many start earlier, later, just as before, or in one run only."""
    counts = dict.fromkeys(("earlier", "later", "unmoved", "only_before", "only_after"), 0)
    found: list[tuple[float, dict[str, Any]]] = []
    for name, was in before.items():
        now = after.get(name)
        if now is None or was.began_running:
            continue
        a, b = was.started, now.started
        if a is None and b is None:
            continue
        if a is None or b is None:
            counts["only_after" if a is None else "only_before"] += 1
            size = float("inf")
        elif abs(b - a) < MOVED_S:
            counts["unmoved"] += 1
            continue
        else:
            counts["earlier" if b < a else "later"] += 1
            size = abs(b - a)
        move = {
            "job": name.partition("/")[2] or name,
            "user": was.user,
            "tenant": was.tenant,
            "before_s": a,
            "after_s": b,
            "why": (was.waits if a is None or (b is not None and b < a) else now.refused or now.waits),
        }
        found.append((size, move))
    found.sort(key=lambda f: (-f[0], f[1]["user"], f[1]["job"]))
    return [move for _, move in found[:MOST_MOVES]], counts

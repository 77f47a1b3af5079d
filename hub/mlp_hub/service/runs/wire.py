"""Runs in their wire form, and as CSV."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlp_api.jobs import runs as runs_api
from mlp_hub.domain.jobs.job import FINAL, state_of
from mlp_hub.domain.jobs.run import MetricSummary
from mlp_hub.domain.resources import HOUR_S
from mlp_hub.service.support.csv_text import csv_bytes
from mlp_hub.service.support.units import maybe_when, when
from mlp_hub.store.records import RunRow


def run_to(row: RunRow) -> runs_api.ListedRun:
    """Return a run as tables show it."""
    trial = row.trial or (None, None)
    return runs_api.ListedRun(
        uid=row.uid,
        name=row.name,
        run=row.run,
        user=row.user,
        tenant=row.tenant,
        state=state_of(row.phase).value,
        phase=row.phase.value,
        reason=row.reason if row.phase in FINAL else None,
        progress=row.progress,
        params=dict(row.params),
        metrics={name: _metric(name, one) for name, one in row.metrics.items()},
        duration_s=None if row.duration is None else round(row.duration, 3),
        core_hours=None if row.core_s is None else round(row.core_s / HOUR_S, 6),
        cpu_peak=row.cpu_peak,
        ram_peak=row.ram_peak,
        tags=list(row.tags),
        note=row.note,
        sweep=trial[0],
        trial=trial[1],
        commit=row.commit,
        dirty=row.dirty,
        environment=row.environment,
        submitted_at=when(row.submitted_at),
        started_at=maybe_when(row.started_at),
        finished_at=maybe_when(row.finished_at),
    )


def _metric(name: str, one: MetricSummary) -> runs_api.RunMetric:
    return runs_api.RunMetric(last=one.last, best=one.best(name), low=one.low, high=one.high)


FIXED = (
    "name",
    "run",
    "user",
    "tenant",
    "state",
    "reason",
    "duration_s",
    "core_hours",
    "cpu_peak",
    "ram_peak",
    "tags",
    "note",
    "sweep",
    "trial",
    "commit",
    "dirty",
    "submitted_at",
    "started_at",
    "finished_at",
)


def csv_head(params: Sequence[str], metrics: Sequence[str]) -> bytes:
    """Return the first line: fixed columns, then `param.NAME`, `metric.NAME` and `best.NAME`."""
    measured = [f"{kind}.{name}" for name in metrics for kind in ("metric", "best")]
    return csv_bytes([[*FIXED, *(f"param.{name}" for name in params), *measured]])


def csv_lines(runs: Iterable[runs_api.ListedRun], params: Sequence[str], metrics: Sequence[str]) -> bytes:
    """Return a line for each run."""
    lines: list[list[object]] = []
    for run in runs:
        line: list[object] = []
        for name in FIXED:
            value = getattr(run, name)
            if name == "tags":
                value = " ".join(value)
            line.append(value)
        line += [run.params.get(name) for name in params]
        for name in metrics:
            one = run.metrics.get(name)
            line += [None, None] if one is None else [one.last, one.best]
        lines.append(line)
    return csv_bytes(lines)

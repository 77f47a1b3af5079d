"""Use by a tenant's jobs in a time span: exact sums and the most at once, of the runs that are kept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, and_, or_, select

from mlp_hub.domain.resources import MILLI
from mlp_hub.store.records import RunTotals
from mlp_hub.store.repos.jobs.run_search import duration, ranks_of, spec_of
from mlp_hub.store.tables import job, run_summary

MOST = 50_000
"""Safety: newest jobs of a tenant that are added up: bounds memory and time."""


def totals(connection: Connection, tenant: str, since: float, now: float) -> RunTotals:
    """Add up what the tenant's jobs took from a time on until now."""
    c, spec = job.c, spec_of()
    each = spec["per_worker", "cpu"].as_integer(), spec["per_worker", "gpu"].as_integer()
    going = and_(c.finished_at.is_(None), c.started_at.is_not(None))
    query = (
        select(c.started_at, c.finished_at, duration(now), ranks_of(), *each)
        .select_from(job.outerjoin(run_summary, run_summary.c.job == c.uid))
        .where(c.tenant == tenant, or_(c.finished_at > since, going))
        .order_by(c.uid.desc())
        .limit(MOST)
    )
    cpu_s = gpu_s = 0.0
    moves: list[tuple[float, float, float]] = []
    for started, finished, ran, ranks, cpu, gpu in connection.execute(query):
        if ran is None or started is None:
            continue
        within = max(ran - max(since - started, 0.0), 0.0)
        cores, devices = (ranks or 0) * (cpu or 0) / MILLI, (ranks or 0) * (gpu or 0) / MILLI
        cpu_s += within * cores
        gpu_s += within * devices
        moves += [(max(started, since), cores, devices), (finished or now, -cores, -devices)]
    most_cpu, most_gpu = _most(moves)
    return RunTotals(cpu_s, gpu_s, most_cpu, most_gpu)


def _most(moves: Iterable[tuple[float, float, float]]) -> tuple[float, float]:
    """Return the most that was held at once; an end at a moment makes room for a begin at the same moment."""
    cpu = gpu = most_cpu = most_gpu = 0.0
    key: Any = lambda move: (move[0], move[1] + move[2])  # noqa: E731
    for _, cores, devices in sorted(moves, key=key):
        cpu, gpu = cpu + cores, gpu + devices
        most_cpu, most_gpu = max(most_cpu, cpu), max(most_gpu, gpu)
    return round(most_cpu, 3), round(most_gpu, 3)

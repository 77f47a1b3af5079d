"""Parts of jobs' points that one request hands on, read from the database, and their form for the process that sends them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlp_hub.domain.jobs.job import FINAL, Job, Phase
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.service.config import ExportPolicy
from mlp_hub.store.records import ExportCursor, StoredPoint
from mlp_hub.store.tx import Tx

PAGE_POINTS = 2000
"""Tuning: points of a job in one part: fewer reads with more, sooner the turn of others with less."""
PAGE_BYTES = 64 * 1024
"""Safety: stored bytes of the points of a part, or one row: bounds memory."""
_ENDS = {Phase.FINISHED: "FINISHED", Phase.FAILED: "FAILED", Phase.CANCELLED: "KILLED"}
"""Given: statuses of MLflow by the phases of jobs."""


@dataclass(frozen=True, slots=True)
class ExportPart:
    """Points of a job that follow its cursor. `whole`: the job has no further ones now."""

    job: Job
    cursor: ExportCursor
    points: Sequence[StoredPoint]
    whole: bool

    @property
    def seq(self) -> int:
        """Number of the last point."""
        return self.points[-1].seq if self.points else self.cursor.seq

    @property
    def ends(self) -> bool:
        """Whether it is the last part of a job that has ended."""
        return self.whole and self.job.phase in FINAL

    def data(self) -> dict[str, Any]:
        """Return the part as the sending process gets it."""
        job, spec = self.job, self.job.spec
        return {
            "uid": job.uid,
            "name": spec.name,
            "run": job.run,
            "title": job.title,
            "user": spec.user,
            "tenant": spec.tenant,
            "entry": spec.entry or "",
            "sweep": "" if spec.trial is None else spec.trial.name,
            "params": dict(spec.params) if not self.cursor.target else {},
            "started": job.submitted_at if job.started_at is None else job.started_at,
            "target": self.cursor.target,
            "end": [_ENDS[job.phase], job.finished_at or job.submitted_at] if self.ends else None,
            "points": [(p.seq, p.rank, p.time, p.values) for p in self.points],
        }


def part_of(tx: Tx, exporter: str, uid: str, values: int) -> ExportPart | None:
    """Return the next points of a job, about `values` values at most; None if the job or its cursor is gone."""
    cursor, job = tx.point_exports.get(uid, exporter), tx.jobs.get(SYSTEM, uid)
    if cursor is None or job is None:
        return None
    points, whole = tx.metrics.page(uid, cursor.seq, min(PAGE_POINTS, values), PAGE_BYTES)
    fit = left = 0
    for point in points:
        left += len(point.values)
        if fit and left > values:
            break
        fit += 1
    return ExportPart(job, cursor, points[:fit], whole and fit == len(points))


def points_of(parts: Sequence[ExportPart], values: int) -> int:
    """Return how many points of these parts lack a value, at least, if a target left out a number of `values`.

    A target tells the number of values, and not whose they are. A point has as many values as the program reported together.
    """
    found = 0
    for size in sorted((len(point.values) for part in parts for point in part.points), reverse=True):
        if values <= 0:
            break
        values -= size
        found += 1
    return found


def request_of(parts: Sequence[ExportPart], policy: ExportPolicy) -> str:
    """Return parts as JSON for the sending process; values that are not finite are as Python writes and reads them."""
    target = {"headers": dict(policy.headers), "ca": policy.ca, "packed": policy.packed}
    return json.dumps({**target, "jobs": [part.data() for part in parts]})

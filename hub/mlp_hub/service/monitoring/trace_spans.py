"""Spans of a run's trace, made from its stored timeline: the whole run, and the stages of each attempt.

Names and attributes follow the semantic conventions of OpenTelemetry for CI/CD pipelines. The ids are derived from the run's
uid, so that a run that is exported twice has the same spans.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from mlp_hub.domain.jobs.job import Cause, Job, Phase
from mlp_hub.domain.jobs.stages import StartStage
from mlp_hub.domain.jobs.tracing import RUN, span_id, trace_id
from mlp_hub.service.jobs.stages import StagedAttempt, attempts_of
from mlp_hub.store.records import JobEvent

Span = dict[str, Any]
"""A span as data: `trace`, `span`, `parent`, `name`, `start` and `end` in seconds since the epoch, `attributes`, `error`, `link`."""

RUNNING = "running"
"""Name of the stage from the first running rank to the end of the attempt."""
_BEFORE = tuple(s for s in StartStage if s not in (StartStage.STARTED, StartStage.FIRST_LINE))
_PARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
_GOOD = frozenset({"ended", "requeued", "suspended", "resized", "cancelled"})
"""Steps with which an attempt ends that are not its fault; whether the program ended well is the run's result."""


def spans_of(job: Job, events: Iterable[JobEvent]) -> list[Span]:
    """Return the spans of a run that has ended: its root first. `events` are the steps of its timeline in order."""
    end = job.submitted_at if job.finished_at is None else max(job.finished_at, job.submitted_at)
    result = _result(job)
    attributes: dict[str, str | int] = {
        "cicd.pipeline.action.name": "RUN",
        "cicd.pipeline.name": job.spec.name,
        "cicd.pipeline.run.id": job.uid,
        "cicd.pipeline.result": result,
        "mlp.run": job.run,
        "mlp.tenant": job.spec.tenant,
        "mlp.user": job.spec.user,
        "mlp.attempts": job.restarts + 1,
    }
    if job.spec.request_id:
        attributes["mlp.request_id"] = job.spec.request_id
    if job.failure is not None:
        attributes["error.type"] = job.failure.cause.value
    root: Span = {
        "trace": trace_id(job.uid),
        "span": span_id(job.uid, RUN),
        "parent": "",
        "name": f"RUN {job.spec.name}",
        "start": job.submitted_at,
        "end": end,
        "attributes": attributes,
        "error": result in ("failure", "timeout", "error"),
        "link": _link(job),
    }
    found = [root]
    for attempt in attempts_of(events, job.restarts):
        found += _stages(job, attempt, end)
    return found


def _stages(job: Job, attempt: StagedAttempt, end: float) -> Iterator[Span]:
    """Yield a span for each stage of an attempt; a stage ends when the next one begins."""
    reached = [(stage, at) for stage, at, _ in attempt.in_order()]
    over = end if attempt.ended_at is None else attempt.ended_at
    shown = [(stage.value, at) for stage, at in reached if stage in _BEFORE]
    shown += [(RUNNING, at) for stage, at in reached if stage is StartStage.STARTED]
    for place, (stage, begun) in enumerate(shown):
        last = place + 1 == len(shown)
        until = over if last else shown[place + 1][1]
        failed = last and attempt.ended is not None and attempt.ended not in _GOOD
        yield {
            "trace": trace_id(job.uid),
            "span": span_id(job.uid, f"{stage}-{attempt.number}"),
            "parent": span_id(job.uid, RUN),
            "name": stage,
            "start": begun,
            "end": max(until, begun),
            "attributes": {
                "cicd.pipeline.task.name": stage,
                "cicd.pipeline.task.run.id": f"{job.uid}/{attempt.number}/{stage}",
                "mlp.attempt": attempt.number,
            },
            "error": failed,
            "link": None,
        }


def _result(job: Job) -> str:
    """Return the result of a run in the words of the conventions."""
    if job.phase is Phase.FINISHED:
        return "success"
    if job.phase is Phase.CANCELLED:
        return "cancellation"
    if job.failure is None:
        return "error"
    return {
        Cause.TIME_LIMIT: "timeout",
        Cause.NODE_LOST: "error",
        Cause.START_FAILED: "error",
    }.get(job.failure.cause, "failure")


def _link(job: Job) -> tuple[str, str] | None:
    """Return the trace and the span that the user named in `TRACEPARENT`; the run is linked to them, and not a part of them."""
    found = _PARENT.fullmatch(job.spec.env.get("TRACEPARENT", ""))
    if found is None or not found[1].strip("0") or not found[2].strip("0"):
        return None
    return found[1], found[2]

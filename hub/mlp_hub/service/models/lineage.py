"""Sources of models: the allowed values of `src`, and where a model comes from."""

from __future__ import annotations

import hashlib
import re

import msgspec

from mlp_api.jobs.jobs import JOB_PATTERN
from mlp_api.stored.models import Lineage
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.jobs import names
from mlp_hub.domain.jobs.job import Job
from mlp_hub.domain.stored.model import ModelSource
from mlp_hub.domain.tenants.tenant_context import TenantContext
from mlp_hub.service.support.units import when
from mlp_hub.store.tx import Tx
from mlp_language.message import msg

NEWEST = 1000
"""Tuning: newest points of a job in which the last value of each metric is looked for: fewer rows, for rare metrics that are missed."""
_JOB = re.compile(JOB_PATTERN)
CHECKPOINTS = "ckpt"
_SHOWN = 60
"""Safety: characters of a bad source that are repeated in the answer."""
_RIGHT = msg("JOB, jobs/JOB/PATH, jobs/JOB@RUN/PATH or home/PATH, such as jobs/digits/ckpt/best.safetensors")


def parse(user: str, src: str) -> tuple[str, int | None, str]:
    """Return the job, the run (none: the latest) and the path that a source names; no job for a home.

    The interface document has letters alone there, so a job's name by itself means its checkpoints.
    """
    text = f"jobs/{src}/{CHECKPOINTS}" if _JOB.match(src) and src not in {"home", "jobs"} else src
    if src.startswith("/mlp/"):
        _, _, kind, owner, *rest = [*src.split("/", 5), "", ""]
        if owner != user:
            raise not_found("job", clip(src))  # another's answers as what is not there
        text = "/".join((kind, *filter(None, rest)))
        if kind == "datasets" and rest[0] == ".home":
            text = "/".join(("home", *filter(None, rest[1:])))
    kind, _, rest_ = text.partition("/")
    if kind == "home" and rest_:
        return "", None, rest_
    job, _, path = rest_.partition("/")
    found = names.parse_reference(job) if kind == "jobs" and _JOB.match(job) else None
    if found is not None and not path:
        own = f"jobs/{job}"
        raise Refused(
            Reason.INVALID,
            msg(
                "src is {src}, which does not name the place of the model; write {job} for the checkpoints, {all}, or {src}/PATH",
                src=own,
                job=job,
                all=f"{own}/{CHECKPOINTS}",
            ),
        )
    if found is None and (meant := _meant(kind, job, path)):
        raise Refused(
            Reason.INVALID,
            msg(
                "src is {src}; did you mean {meant}? Write {right}",
                src=clip(src),
                meant=meant,
                right=_RIGHT,
            ),
        )
    if found is None:
        raise Refused(Reason.INVALID, msg("src is {src}; write {right}", src=clip(src), right=_RIGHT))
    return found[0], found[1], path


def _meant(kind: str, job: str, path: str) -> str:
    """Return what was meant with `job/JOB/PATH`; empty where that cannot be told."""
    if kind != "job" or not _JOB.match(job):
        return ""
    return clip(f"jobs/{job}/{path or CHECKPOINTS}")


def clip(src: str) -> str:
    """Return as much of a source as an answer repeats."""
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in src[: _SHOWN + 1])
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def text_of(source: ModelSource) -> str:
    """Write a source as `src` has it."""
    return (
        f"jobs/{names.reference(source.job, source.run)}/{source.path}"
        if source.job
        else f"home/{source.path}"
    )


def find_job(tx: Tx, context: TenantContext, user: str, name: str, run: int | None) -> Job:
    """Return the run of a job. Raises NotFound."""
    reference = name if run is None else names.reference(name, run)
    job = tx.jobs.find(context, user, reference)
    if job is None:
        raise not_found("job", reference)
    return job


def lineage_of(tx: Tx, job: Job | None, now: float) -> Lineage:
    """Return what is known now of where a model comes from."""
    if job is None:
        nothing = dict.fromkeys(("job", "run", "job_uid", "runtime", "entry", "code_sha256", "workers"))
        return Lineage(**nothing, args=[], env={}, data=[], metrics={}, taken_at=when(now))
    spec = job.spec
    return Lineage(
        job=spec.name,
        run=job.run,
        job_uid=job.uid,
        runtime=spec.runtime,
        entry=spec.entry,
        code_sha256=None if spec.code is None else hashlib.sha256(spec.code.encode()).hexdigest(),
        args=list(spec.args),
        env=dict(spec.env),
        workers=spec.workers_min
        if spec.workers_min == spec.workers_max
        else f"{spec.workers_min}:{spec.workers_max}",
        data=[use.title(spec.user) for use in spec.data],
        metrics=_last_metrics(tx, job.uid),
        taken_at=when(now),
    )


def _last_metrics(tx: Tx, uid: str) -> dict[str, float]:
    found: dict[str, float] = {}
    seq, whole = max(tx.metrics.last_seq(uid) - NEWEST, 0), False
    while not whole:
        points, whole = tx.metrics.page(uid, seq, NEWEST)
        for point in points:
            seq = point.seq
            found.update({name: float(value) for name, value in point.values.items()})
    return found


def lineage_text(lineage: Lineage) -> str:
    """Write it as it is stored."""
    return msgspec.json.encode(lineage).decode()


def lineage_from(text: str) -> Lineage:
    """Read it as it is stored."""
    return msgspec.json.decode(text, type=Lineage)

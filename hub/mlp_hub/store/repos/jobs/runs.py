"""Data and results of runs, beside their jobs: origins, parameters, summaries, notes and tags."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import BindParameter, and_, bindparam, exists, func, or_, select, update

from mlp_hub.domain.jobs.job import FINAL, Cause, Phase, RankStatus, Trial
from mlp_hub.domain.jobs.run import MetricSummary, Origin, ParamValue, RunSummary, UsedDataset
from mlp_hub.domain.jobs.runquery import RunOrder, Term
from mlp_hub.domain.tenants.tenant_context import TenantContext
from mlp_hub.store import codec
from mlp_hub.store.records import EarlierRun, RunEnd, RunRow, RunTotals
from mlp_hub.store.repos.base import MOST_NAMES, Repo, chunks, within
from mlp_hub.store.repos.jobs import job_rows, run_search, run_totals
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import job, run_origin, run_summary, run_tag, run_text, run_value

METRIC, PARAM, SWEEP = "metric", "param", "sweep"
_FINAL = [p.value for p in sorted(FINAL)]
_origins = Rows(Origin, run_origin, beside=("job", "bytes"))
_summaries = Rows(RunSummary, run_summary, beside=("job",), given=("metrics",))
_ranks = msgspec.json.Decoder(tuple[RankStatus, ...])
_JOBS: BindParameter[Any] = bindparam("jobs", expanding=True)
# built once: each job that ends comes by here
_SUMMED = select(run_summary).where(run_summary.c.job.in_(_JOBS))
_METRICS = select(run_value).where(run_value.c.job.in_(_JOBS), run_value.c.kind == METRIC)
_ENDS = select(
    job.c.uid,
    job.c.phase,
    job.c.started_at,
    job.c.finished_at,
    job.c.queued_at,
    job.c.admitted_at,
    job.c.past,
    job.c.ranks,
).where(job.c.uid.in_(_JOBS))
_FINISHED_OR_OUT_OF_MEMORY = or_(
    job.c.phase == Phase.FINISHED.value,
    and_(job.c.phase == Phase.FAILED.value, job.c.reason == Cause.OUT_OF_MEMORY.value),
)
_THERE = select(job.c.uid).where(job.c.uid.in_(_JOBS))


def sha256_of(text: str) -> str:
    """Return the key under which a text is stored once."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


class Runs(Repo):
    """Data of runs, deleted with their jobs; texts without a run are deleted in `delete_unused_texts`."""

    __slots__ = ()

    # --------------------------------------------------------------- kept

    def put_origin(self, uid: str, origin: Origin, texts: Iterable[str] = ()) -> None:
        """Note where a run came from, with the texts that it names by their sha256."""
        size = 0
        for text in texts:
            size += len(text.encode("utf-8", "replace"))
            row = {"sha256": sha256_of(text), "text": codec.text(text)}
            self._c.execute(self._insert(run_text).on_conflict_do_nothing(index_elements=["sha256"]), row)
        self._store(_origins, origin, job=uid, bytes=size)

    def put_params(self, uid: str, params: Mapping[str, ParamValue]) -> None:
        """Note a new run's parameters."""
        rows = [
            {
                "job": uid,
                "kind": PARAM,
                "name": codec.text(name),
                "number": None if isinstance(value, str | bool) else float(value),
                "best": None,
                "low": None,
                "high": None,
                "text": codec.dumps(value),
            }
            for name, value in params.items()
        ]
        if rows:
            self._c.execute(self._upsert(run_value, ("job", "kind", "name")), rows)

    def put_trial(self, uid: str, trial: Trial) -> None:
        """Note which trial of which sweep a new run is."""
        row = {"job": uid, "kind": SWEEP, "name": trial.name, "number": float(trial.number)}
        row |= {"best": None, "low": None, "high": None, "text": trial.sweep}
        self._c.execute(self._upsert(run_value, ("job", "kind", "name")), row)

    def origin(self, uid: str) -> Origin:
        """Return where a run came from."""
        return self._one(_origins, select(run_origin).where(run_origin.c.job == uid)) or Origin()

    def put_data(self, uid: str, data: Sequence[UsedDataset]) -> None:
        """Note what the datasets of a run were when it started."""
        self._c.execute(update(run_origin).where(run_origin.c.job == uid).values(data=codec.dumps(data)))

    def text(self, sha256: str | None) -> str | None:
        """Return a text that is kept."""
        if sha256 is None:
            return None
        found: str | None = self._c.scalar(select(run_text.c.text).where(run_text.c.sha256 == sha256))
        return found

    def delete_unused_texts(self, most: int) -> int:
        """Forget texts that no run has any more, `most` of them at most; return how many."""
        of = run_origin.c
        used = exists().where(or_(of.environment == run_text.c.sha256, of.program == run_text.c.sha256))
        found = list(self._c.scalars(select(run_text.c.sha256).where(~used).limit(most)))
        for part in chunks(found):
            self._delete(run_text, run_text.c.sha256.in_(part))
        return len(found)

    # -------------------------------------------------------------- summed

    def unsummed(self, most: int) -> list[str]:
        """Return jobs that ended and are not summed up for good, `most` of them at most."""
        query = (
            select(job.c.uid)
            .outerjoin(run_summary, (run_summary.c.job == job.c.uid) & run_summary.c.final)
            .where(job.c.phase.in_(_FINAL), run_summary.c.job.is_(None))
            .limit(most)
        )
        return list(self._c.scalars(query))

    def ended_since(self, since: float, most: int) -> list[str]:
        """Return the uids of runs that ended since then, the first to end first; if more than `most`, the last of them."""
        query = (
            select(job.c.uid)
            .where(job.c.phase.in_(_FINAL), job.c.finished_at >= since)
            .order_by(job.c.finished_at.desc())
            .limit(most)
        )
        return list(self._c.scalars(query))[::-1]

    def newest_finished(
        self, context: TenantContext, *, looked_at: int, of_user: int, most: int, longest_spec: int
    ) -> list[EarlierRun]:
        """Return the newest runs that finished or ran out of memory, the oldest first.

        Of the `looked_at` runs that were submitted last, `of_user` of each user at most and `most` of all are looked at.
        Specifications of more than `longest_spec` characters are left out.
        """
        j = job.c
        newest = select(j.uid, j.user).order_by(j.uid.desc()).limit(looked_at).subquery()
        place = func.row_number().over(partition_by=newest.c.user, order_by=newest.c.uid.desc())
        ranked = select(newest.c.uid, place.label("place")).subquery()
        first = (
            select(ranked.c.uid)
            .where(ranked.c.place <= of_user)
            .order_by(ranked.c.uid.desc())
            .limit(most)
            .subquery()
        )
        query = (
            select(
                *(j.spec, j.phase, j.started_at, j.finished_at, j.queued_at, j.admitted_at, j.past),
                run_summary.c.ram_peak,
            )
            .join(first, first.c.uid == j.uid)
            .outerjoin(run_summary, run_summary.c.job == j.uid)
            .where(_FINISHED_OR_OUT_OF_MEMORY, func.length(j.spec) <= longest_spec)
            .order_by(j.finished_at, j.uid)
        )
        seen = within(query, context, j.user, j.tenant)
        return [
            EarlierRun(job_rows.spec_of(row.spec), Phase(row.phase), job_rows.ran_of(row), row.ram_peak)
            for row in self._c.execute(seen)
        ]

    def summary(self, uid: str) -> RunSummary:
        """Return what is worked out of a run so far."""
        return self.summaries((uid,))[uid]

    def summaries(self, uids: Sequence[str]) -> dict[str, RunSummary]:
        """Return what is worked out so far of each of these runs."""
        found = dict.fromkeys(uids, RunSummary())
        for part in chunks(found):
            metrics: dict[str, dict[str, MetricSummary]] = {}
            rows = self._c.execute(_SUMMED, {"jobs": part}).all()
            if rows:
                for m in self._c.execute(_METRICS, {"jobs": [row.job for row in rows]}):
                    metrics.setdefault(m.job, {})[m.name] = _metric(m)
            for row in rows:
                found[row.job] = _summaries.of(row, metrics=metrics.get(row.job, {}))
        return found

    def ends(self, uids: Iterable[str]) -> dict[str, RunEnd]:
        """Return times and ranks of these jobs' rows, without their programs; missing jobs are left out."""
        found: dict[str, RunEnd] = {}
        for part in chunks(uids):
            for row in self._c.execute(_ENDS, {"jobs": part}):
                ranks = _ranks.decode(row.ranks)
                found[row.uid] = RunEnd(
                    Phase(row.phase), job_rows.ran_of(row), ranks, job_rows.ran_before(row)
                )
        return found

    def put_summary(self, uid: str, summary: RunSummary) -> bool:
        """Store what was worked out, unless the job is gone."""
        return bool(self.put_summaries({uid: summary}))

    def put_summaries(self, summaries: Mapping[str, RunSummary]) -> int:
        """Store what was worked out of these runs; return of how many, as those are left out whose jobs are gone."""
        there = {uid for part in chunks(summaries) for uid in self._c.scalars(_THERE, {"jobs": part})}
        runs = [{"job": uid, **_summaries.row(summary)} for uid, summary in summaries.items() if uid in there]
        values = [
            {
                "job": uid,
                "kind": METRIC,
                "name": name,
                "number": one.last,
                "best": one.best(name),
                "low": one.low,
                "high": one.high,
                "text": str(one.rank),
            }
            for uid, summary in summaries.items()
            if uid in there
            for name, one in {codec.text(name): one for name, one in summary.metrics.items()}.items()
        ]
        self._insert_all(run_summary, runs, ("job",), replaces=True)
        self._insert_all(run_value, values, ("job", "kind", "name"), replaces=True)
        return len(runs)

    def reopen(self, uid: str) -> None:
        """Have a run that had ended summed up once more: points of it came late."""
        self._c.execute(update(run_summary).where(run_summary.c.job == uid).values(final=False))

    def forget_metrics(self, uid: str) -> None:
        """Forget what became of a run's metrics: its points are deleted."""
        self._delete(run_value, run_value.c.job == uid, run_value.c.kind == METRIC)

    # ------------------------------------------------------------- written

    def set_tags(self, uid: str, tags: Iterable[str]) -> None:
        """Replace the tags of a run."""
        self._delete(run_tag, run_tag.c.job == uid)
        rows = [{"job": uid, "tag": codec.text(tag)} for tag in dict.fromkeys(tags)]
        if rows:
            self._c.execute(run_tag.insert(), rows)

    def tags(self, uid: str) -> list[str]:
        """Return a run's tags by name."""
        return list(
            self._c.scalars(select(run_tag.c.tag).where(run_tag.c.job == uid).order_by(run_tag.c.tag))
        )

    # --------------------------------------------------------------- found

    def search(
        self,
        context: TenantContext,
        *,
        user: str | None,
        tenant: str | None,
        terms: Sequence[Term],
        order: RunOrder,
        now: float,
        most: int,
    ) -> list[str]:
        """Return the uids of a user's or a tenant's runs for which all terms hold, in this order, `most` at most."""
        query = within(
            run_search.query_of(user, tenant, terms, order, now), context, job.c.user, job.c.tenant
        )
        return [row[0] for row in self._c.execute(query.limit(most))]

    def totals(self, tenant: str, since: float, now: float) -> RunTotals:
        """Add up what a tenant's jobs took from a time on until now."""
        return run_totals.totals(self._c, tenant, since, now)

    def names(self, uids: Sequence[str]) -> dict[str, list[str]]:
        """Return, by kind, which parameters and metrics these runs have, the most frequent first."""
        counted: dict[tuple[str, str], int] = {}
        for part in chunks(uids):
            query = (
                select(run_value.c.kind, run_value.c.name, func.count())
                .where(run_value.c.job.in_(part), run_value.c.kind.in_((PARAM, METRIC)))
                .group_by(run_value.c.kind, run_value.c.name)
            )
            for kind, name, n in self._c.execute(query):
                counted[kind, name] = counted.get((kind, name), 0) + int(n)
        found: dict[str, list[str]] = {PARAM: [], METRIC: []}
        for kind, name in sorted(counted, key=lambda key: (-counted[key], key)):
            found[kind].append(name)
        return found

    def rows(self, context: TenantContext, uids: Sequence[str], now: float) -> list[RunRow]:
        """Return these runs in this order, as they are `now`; missing ones are left out."""
        found: dict[str, Any] = {}
        params: dict[str, dict[str, ParamValue]] = {}
        metrics: dict[str, dict[str, MetricSummary]] = {}
        tags: dict[str, list[str]] = {}
        trials: dict[str, tuple[str, int]] = {}
        for at in range(0, len(uids), MOST_NAMES):
            part = uids[at : at + MOST_NAMES]
            query = within(run_search.rows_of(part, now), context, job.c.user, job.c.tenant)
            found |= {row.uid: row for row in self._c.execute(query)}
            for v in self._c.execute(select(run_value).where(run_value.c.job.in_(part))):
                if v.kind == PARAM:
                    params.setdefault(v.job, {})[v.name] = codec.loads(v.text)
                elif v.kind == SWEEP:
                    trials[v.job] = v.name, int(v.number)
                else:
                    metrics.setdefault(v.job, {})[v.name] = _metric(v)
            tagged = select(run_tag).where(run_tag.c.job.in_(part)).order_by(run_tag.c.tag)
            for row in self._c.execute(tagged):
                tags.setdefault(row.job, []).append(row.tag)
        return [
            RunRow(
                uid=row.uid,
                user=row.user,
                name=row.name,
                run=row.run,
                tenant=row.tenant,
                phase=Phase(row.phase),
                reason=row.reason,
                progress=row.progress,
                submitted_at=row.submitted_at,
                started_at=row.started_at,
                finished_at=row.finished_at,
                duration=row.duration,
                core_s=row.core_s,
                cpu_peak=row.cpu_peak,
                ram_peak=row.ram_peak,
                commit=row.commit,
                dirty=row.dirty,
                environment=row.environment,
                note=row.note or "",
                tags=tuple(tags.get(row.uid, ())),
                params=params.get(row.uid, {}),
                metrics=metrics.get(row.uid, {}),
                trial=trials.get(row.uid),
            )
            for row in (found[uid] for uid in uids if uid in found)
        ]


def _metric(row: Any) -> MetricSummary:
    return MetricSummary(int(row.text), row.number, row.low, row.high)

"""Jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Row, bindparam, case, exists, func, or_, select, update

from mlp_hub.domain.apps.app import OF_APPS, replica_name
from mlp_hub.domain.changed import changed
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs import names
from mlp_hub.domain.jobs.job import FINAL, HOLDING, Job, Phase, Target
from mlp_hub.domain.tenants.tenant import DEFAULT_TENANT
from mlp_hub.domain.tenants.tenant_context import TenantContext
from mlp_hub.store.records import EndedJob
from mlp_hub.store.repos.base import MOST_NAMES, Repo, chunks, within
from mlp_hub.store.repos.jobs import job_rows
from mlp_hub.store.tables import job as t
from mlp_hub.store.tables import member
from mlp_language.message import msg

PAGE_BYTES = 4 * 2**20
"""Of specifications on one page; one may have 2 MiB."""
FETCHED = 32
"""Rows that are read together for a page, which may end with the first of them."""
_HOLDING = [p.value for p in sorted(HOLDING)]
_FINAL = [p.value for p in sorted(FINAL)]
_ACTIVE = [p.value for p in Phase if p not in FINAL]


# built once: building a statement costs more than running it
_GET = select(t).where(t.c.uid == bindparam("uid"))
_NAME = select(t).where(t.c.user == bindparam("user"), t.c.name == bindparam("name"))
_LATEST = _NAME.order_by(t.c.run.desc()).limit(1)
_RUN = _NAME.where(t.c.run == bindparam("run"))
_LATEST_RUN = (
    select(t.c.name, func.max(t.c.run).label("run"))
    .where(t.c.user == bindparam("user"), t.c.name.in_(bindparam("names", expanding=True)))
    .group_by(t.c.name)
    .subquery()
)
_LATEST_OF = select(t).join(
    _LATEST_RUN,
    (t.c.user == bindparam("user")) & (t.c.name == _LATEST_RUN.c.name) & (t.c.run == _LATEST_RUN.c.run),
)
_AMONG = t.c.uid.in_(bindparam("uids", expanding=True))
_ALL_OF = select(t).where(_AMONG)
_Row: Any = NamedTuple("_Row", [(name, Any) for name in tuple(t.c.keys())])  # type: ignore[misc]
"""Row of a job whose columns are read sooner than those of SQLAlchemy's."""
_KEYS = ("user", "name", "run")
_UPDATE = update(t).where(t.c.uid == bindparam("b_uid"), t.c.version == bindparam("b_version"))
_NAMED = select(t.c.uid, t.c.user, t.c.name).order_by(t.c.uid)
_VERSIONS = select(t.c.uid, t.c.version).where(_AMONG)
_QUEUED = select(t.c.uid).where(_AMONG, t.c.phase == Phase.QUEUED.value)


_OF_PEOPLE = ~t.c.name.startswith(OF_APPS, autoescape=True)


class Stale(Refused):
    """Error: the job changed since it was read; read it again and decide again."""

    def __init__(self, job: Job) -> None:
        super().__init__(
            Reason.CONFLICT,
            msg(
                "job {title} was changed by another request (version {version} is not the last); try again",
                title=job.title,
                version=job.version,
            ),
        )


class Jobs(Repo):
    """The jobs of all users. A job is here from its submission until `remove`."""

    __slots__ = ()

    def insert(self, job: Job) -> bool:
        """Store a new job, with its version as given; False when its user has that run of that name."""
        return self._c.execute(self._insert_new(t, _KEYS), job_rows.ROWS.row(job)).first() is not None

    def get(self, context: TenantContext, uid: str) -> Job | None:
        """Return the job of this uid."""
        return _seen(context, self._c.execute(_GET, {"uid": uid}).first())

    def among(self, context: TenantContext, uids: Iterable[str]) -> dict[str, Job]:
        """Return those of these jobs that are there, by uid."""
        rows = (row for part in chunks(uids) for row in self._c.execute(_ALL_OF, {"uids": part}))
        return {job.uid: job for row in rows if (job := _seen(context, row)) is not None}

    def find(self, context: TenantContext, user: str, reference: str) -> Job | None:
        """Return the latest run of the user's job of this name, or the one that `NAME@RUN` says."""
        meant = names.parse_reference(reference)
        if meant is None:
            return None
        name, run = meant
        query = _LATEST if run is None else _RUN
        return _seen(context, self._c.execute(query, {"user": user, "name": name, "run": run}).first())

    def latest(self, context: TenantContext, user: str, of: Iterable[str]) -> dict[str, Job]:
        """Return the latest run of each of these names that has any."""
        found: dict[str, Job] = {}
        for part in chunks(dict.fromkeys(of)):
            for row in self._c.execute(_LATEST_OF, {"user": user, "names": part}):
                if (job := _seen(context, row)) is not None:
                    found[row.name] = job
        return found

    def reader_of(self, context: TenantContext, dataset: str, tenant: str) -> Job | None:
        """Return the oldest open job of a tenant that reads the dataset of this uid; None if there is none.

        The amount to search is bounded: the bytes of all open jobs together are limited.
        """
        query = select(t).where(
            t.c.tenant == tenant, t.c.phase.in_(_ACTIVE), t.c.spec.contains(dataset, autoescape=True)
        )
        query = within(query, context, t.c.user, t.c.tenant).order_by(t.c.uid)
        found = (job_rows.job_of(row) for row in self._c.execute(query))
        return next((job for job in found if any(use.uid == dataset for use in job.spec.data)), None)

    def using_environment(self, context: TenantContext, environment: str, tenant: str) -> list[Job]:
        """Return the jobs of a tenant that have not ended and run in the environment of this uid, the oldest first."""
        query = select(t).where(
            t.c.tenant == tenant, t.c.phase.in_(_ACTIVE), t.c.spec.contains(environment, autoescape=True)
        )
        query = within(query, context, t.c.user, t.c.tenant).order_by(t.c.uid)
        found = (job_rows.job_of(row) for row in self._c.execute(query))
        return [job for job in found if job.spec.environment and job.spec.environment.uid == environment]

    def ended_runs(self, context: TenantContext, user: str, name: str) -> list[str]:
        """Return the uids of the runs of a name that have ended and are not being deleted, the oldest first."""
        query = select(t.c.uid).where(t.c.user == user, t.c.name == name, t.c.phase.in_(_FINAL))
        query = within(query, context, t.c.user, t.c.tenant)
        return list(self._c.scalars(query.order_by(t.c.run)))

    def runs_of(self, context: TenantContext, tenant: str) -> list[tuple[str, str, int]]:
        """Return all runs of a tenant, also ended ones: their users, names and numbers."""
        query = select(t.c.user, t.c.name, t.c.run).where(t.c.tenant == tenant).order_by(t.c.uid)
        query = within(query, context, t.c.user, t.c.tenant)
        return [(row.user, row.name, row.run) for row in self._c.execute(query)]

    def page(
        self,
        context: TenantContext,
        *,
        user: str | None = None,
        name: str | None = None,
        tenants: Collection[str] | None = None,
        phases: Iterable[Phase] | None = None,
        replicas: bool = True,
        trials: bool = True,
        sweep: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> tuple[list[Job], str | None]:
        """Return jobs, the newest first, and the cursor of the next page (None: this was the last).

        Without `replicas` those are left out that are replicas of apps, without `trials` those of sweeps; `sweep` is a uid. Filters that are None let everything through; `tenants=()` nothing. A page holds fewer than `limit` where the
        jobs' programs and arguments are long: about `PAGE_BYTES` of them, and one job at least.
        """
        query = within(select(t.c.uid), context, t.c.user, t.c.tenant)
        query = query.order_by(t.c.uid.desc()).limit(limit + 1)
        for column, value in ((t.c.user, user), (t.c.name, name), (t.c.sweep, sweep)):
            if value is not None:
                query = query.where(column == value)
        if tenants is not None:
            query = query.where(t.c.tenant.in_(list(tenants)))
        if phases is not None:
            query = query.where(t.c.phase.in_([p.value for p in phases]))
        if not replicas:
            query = query.where(_OF_PEOPLE)
        if not trials:
            query = query.where(t.c.sweep.is_(None))
        if cursor is not None:
            query = query.where(t.c.uid < cursor)
        jobs: list[Job] = []
        size = 0
        for row in self._rows(list(self._c.scalars(query)), at_once=FETCHED):
            size += len(row.spec)
            if len(jobs) == limit or (jobs and size > PAGE_BYTES):
                return jobs, jobs[-1].uid
            jobs.append(job_rows.job_of(_Row._make(row)))
        return jobs, None

    def _rows(
        self, uids: Sequence[str], *columns: ColumnElement[Any], at_once: int = MOST_NAMES
    ) -> Iterator[Row[Any]]:
        """Yield the rows of these jobs in this order, read `at_once` at a time.

        The database sorts uids and never rows: a sort of long programs would keep a reader busy for a
        minute.
        """
        query = select(*columns).where(_AMONG) if columns else _ALL_OF
        for at in range(0, len(uids), at_once):
            part = uids[at : at + at_once]
            found = {row.uid: row for row in self._c.execute(query, {"uids": part})}
            yield from (found[uid] for uid in part)

    def replicas(self, context: TenantContext, user: str, app: str) -> list[Job]:
        """Return all jobs that are replicas of the user's app, the oldest first."""
        named = t.c.name.startswith(replica_name(app, ""), autoescape=True)
        query = within(select(t), context, t.c.user, t.c.tenant)
        query = query.where(t.c.user == user, named).order_by(t.c.uid)
        return [job_rows.job_of(row) for row in self._c.execute(query)]

    def of_trial(self, context: TenantContext, sweep: str, number: int) -> Job | None:
        """Return the job that is this trial of a sweep."""
        query = within(select(t), context, t.c.user, t.c.tenant)
        row = self._c.execute(query.where(t.c.sweep == sweep, t.c.trial == number)).first()
        return None if row is None else job_rows.job_of(row)

    def of_sweep(self, context: TenantContext, sweep: str) -> list[tuple[str, Phase]]:
        """Return (uid, phase) of the jobs of a sweep that are there, the oldest first."""
        query = within(select(t.c.uid, t.c.phase), context, t.c.user, t.c.tenant)
        query = query.where(t.c.sweep == sweep).order_by(t.c.uid)
        return [(row.uid, Phase(row.phase)) for row in self._c.execute(query)]

    def active(self, context: TenantContext) -> list[Job]:
        """Return all jobs that are not final (the deleting ones included), the oldest first."""
        query = within(select(t.c.uid), context, t.c.user, t.c.tenant)
        query = query.where(t.c.phase.in_(_ACTIVE)).order_by(t.c.uid)
        return [job_rows.job_of(row) for row in self._rows(list(self._c.scalars(query)))]

    def ended(
        self, context: TenantContext, since: float, until: float, limit: int
    ) -> tuple[list[EndedJob], bool]:
        """Return people's jobs submitted in [since, until) that ended, the newest first, and whether there are more than `limit`."""
        columns = (
            t.c.uid,
            t.c.name,
            t.c.run,
            t.c.user,
            t.c.tenant,
            t.c.phase,
            t.c.restarts,
            t.c.submitted_at,
            t.c.queued_at,
            t.c.admitted_at,
            t.c.started_at,
            t.c.finished_at,
            t.c.past,
            t.c.spec,
        )
        query = (
            within(select(t.c.uid), context, t.c.user, t.c.tenant)
            .where(t.c.phase.in_(_FINAL), t.c.submitted_at >= since, t.c.submitted_at < until, _OF_PEOPLE)
            .order_by(t.c.uid.desc())
            .limit(limit + 1)
        )
        uids = list(self._c.scalars(query))
        return [job_rows.ended_of(row) for row in self._rows(uids[:limit], *columns)], len(uids) > limit

    def images(self, since: float, most: int) -> Counter[str]:
        """Count, by image, those of the newest `most` jobs submitted since then that run in one which their runtime names."""
        newest = select(t.c.uid).where(t.c.submitted_at >= since).order_by(t.c.uid.desc()).limit(most)
        named = select(t.c.spec).where(
            t.c.uid.in_(select(newest.subquery().c.uid)), t.c.spec.contains('"image":"', autoescape=True)
        )
        return Counter(filter(None, map(job_rows.image_of, self._c.scalars(named))))

    def update(self, job: Job) -> Job:
        """Store the changed job and return it with its new version.

        Compare-and-set: `job.version` must be the stored one. The specification never changes and is not
        written. Raises `Stale` when it was changed (or removed) since it was read.
        """
        values = {**job_rows.state(job), "version": job.version + 1}
        if not self._many(_UPDATE, [{**values, "b_uid": job.uid, "b_version": job.version}]):
            raise Stale(job)
        return changed(job, version=job.version + 1)

    def versions(self, uids: Iterable[str]) -> dict[str, int]:
        """Return the stored version of each of these jobs that is there."""
        found: dict[str, int] = {}
        for part in chunks(uids):
            found |= {row[0]: row[1] for row in self._c.execute(_VERSIONS, {"uids": part})}
        return found

    def queued(self, uids: Iterable[str]) -> set[str]:
        """Return those of these jobs that are there and queued."""
        return {uid for part in chunks(uids) for uid in self._c.scalars(_QUEUED, {"uids": part})}

    def update_many(self, jobs: Sequence[Job]) -> list[Job]:
        """Do what `update` does for many in one statement; raises `Stale` when any of them was changed."""
        if not jobs:
            return []
        rows = [job_rows.state(j) for j in jobs]
        for row, j in zip(rows, jobs, strict=True):
            row["version"], row["b_uid"], row["b_version"] = j.version + 1, j.uid, j.version
        if self._many(_UPDATE, rows) != len(jobs):
            raise Stale(jobs[0])
        return [changed(j, version=j.version + 1) for j in jobs]

    def insert_many(self, jobs: Sequence[Job]) -> set[str]:
        """Store new jobs in one statement; return the uids of those stored. Not stored is whose user has that run."""
        if self._insert_all(t, [job_rows.ROWS.row(j) for j in jobs], _KEYS) == len(jobs):
            return {j.uid for j in jobs}
        return set(self.versions(j.uid for j in jobs))

    def remove(self, uid: str) -> bool:
        """Remove the job with its events, metrics and tokens; its name is free again. False: it was gone."""
        return bool(self._delete(t, t.c.uid == uid))

    def suspend_all(self, phases: Iterable[Phase], targets: Iterable[Target]) -> list[tuple[str, str, str]]:
        """Aim the jobs that are in these phases with these targets at suspension; return their (uid, user, name).

        Works with the tables of older versions too: these columns have always been there.
        """
        wanted = t.c.phase.in_([p.value for p in phases]) & t.c.target.in_([a.value for a in targets])
        found = [(row.uid, row.user, row.name) for row in self._c.execute(_NAMED.where(wanted))]
        values = {"target": Target.SUSPEND.value, "version": t.c.version + 1}
        for part in chunks(uid for uid, _, _ in found):
            self._c.execute(update(t).where(t.c.uid.in_(part)).values(values))
        return found

    def waiting_without_place(self) -> list[tuple[str, str]]:
        """Return (user, tenant) of jobs that wait in a tenant, except `default`, without their user as a member."""
        place = exists().where(member.c.tenant == t.c.tenant, member.c.user == t.c.user)
        query = (
            select(t.c.user, t.c.tenant)
            .where(t.c.phase == Phase.QUEUED.value, t.c.tenant != DEFAULT_TENANT, ~place)
            .distinct()
            .order_by(t.c.tenant, t.c.user)
        )
        return [(row.user, row.tenant) for row in self._c.execute(query)]

    def users_active(self, *, after: str = "", limit: int) -> list[str]:
        """Return by name the users, behind `after`, who have jobs that are not final."""
        query = select(t.c.user).where(t.c.phase.in_(_ACTIVE), t.c.user > after).distinct()
        return [*self._c.scalars(query.order_by(t.c.user).limit(limit))]

    def counts(self, tenant: str | None = None, *, replicas: bool = True) -> dict[str, tuple[int, int]]:
        """Return (jobs that hold quota, jobs that wait for it) of each tenant that has any, or of this one; without `replicas` no apps'."""
        holding, waiting = t.c.phase.in_(_HOLDING), t.c.phase == Phase.QUEUED.value
        query = (
            select(
                t.c.tenant,
                func.sum(case((holding, 1), else_=0)).label("running"),
                func.sum(case((waiting, 1), else_=0)).label("waiting"),
            )
            .where(or_(holding, waiting))
            .group_by(t.c.tenant)
        )
        if tenant is not None:
            query = query.where(t.c.tenant == tenant)
        if not replicas:
            query = query.where(_OF_PEOPLE)
        return {row.tenant: (int(row.running), int(row.waiting)) for row in self._c.execute(query)}

    def count_by_phase(self, context: TenantContext, user: str, *, replicas: bool = True) -> dict[Phase, int]:
        """Count a user's jobs in each phase in which there are any; without `replicas` those of apps are left out."""
        query = within(select(t.c.phase, func.count()), context, t.c.user, t.c.tenant)
        query = query.where(t.c.user == user).group_by(t.c.phase)
        if not replicas:
            query = query.where(_OF_PEOPLE)
        return {Phase(phase): int(count) for phase, count in self._c.execute(query)}

    def count_active(self, *, tenant: str | None = None, user: str | None = None) -> int:
        """Count the jobs that are not final, of a tenant, of a user, or of both together."""
        query = select(func.count()).select_from(t).where(t.c.phase.in_(_ACTIVE))
        if tenant is not None:
            query = query.where(t.c.tenant == tenant)
        if user is not None:
            query = query.where(t.c.user == user)
        return int(self._c.scalar(query) or 0)


def _seen(context: TenantContext, row: Row[Any] | None) -> Job | None:
    """Return the job of a row, where it is within the context; a statement that is built once asks for no more."""
    return job_rows.job_of(row) if row is not None and context.sees(row.user, row.tenant) else None

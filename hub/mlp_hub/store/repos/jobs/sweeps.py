"""Sweeps and their trials."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import func, select

from mlp_hub.domain.jobs import names
from mlp_hub.domain.jobs.sweep import ENDED_SWEEPS, Sweep, SweepTrial
from mlp_hub.domain.tenants.tenant_context import TenantContext
from mlp_hub.store.repos.base import OwnedRepo, bounded, chunks
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import sweep as s
from mlp_hub.store.tables import sweep_trial as t

PAGE_BYTES = 4 * 2**20
"""Of specifications on one page; one may have 2 MiB."""
_trials = Rows(SweepTrial, t, beside=("sweep",), packed="data", packs_defaults=True)
_ENDED = [p.value for p in sorted(ENDED_SWEEPS)]


class Sweeps(OwnedRepo[Sweep]):
    """The sweeps of all users, with their trials. One is here until the last of its trials is deleted with it."""

    __slots__ = ()
    rows = Rows(
        Sweep,
        s,
        computed={
            "user": "spec.job.user",
            "name": "name",
            "tenant": "spec.job.tenant",
        },
    )
    found_in = select(s)
    owners = s

    def find(self, context: TenantContext, user: str, reference: str) -> Sweep | None:
        """Return the latest run of the user's sweep of this name, or the one that `NAME@RUN` says."""
        meant = names.parse_reference(reference)
        if meant is None:
            return None
        name, run = meant
        query = select(s).where(s.c.user == user, s.c.name == name).order_by(s.c.run.desc()).limit(1)
        return self._first(context, query if run is None else query.where(s.c.run == run))

    def page(
        self,
        context: TenantContext,
        user: str,
        *,
        tenant: str | None = None,
        before: str | None = None,
        limit: int,
    ) -> tuple[list[Sweep], bool]:
        """Return a user's, the newest first, those older than `before`, a uid; and whether there are more.

        A page holds fewer than `limit` where programs are long: about `PAGE_BYTES` of them, and one at least.
        """
        query = self._within(context, select(s.c.uid, func.length(s.c.spec).label("size")))
        query = query.where(s.c.user == user)
        if tenant is not None:
            query = query.where(s.c.tenant == tenant)
        if before is not None:
            query = query.where(s.c.uid < before)
        rows = self._c.execute(query.order_by(s.c.uid.desc()).limit(limit + 1)).all()
        kept, more = bounded(rows, lambda row: int(row.size), limit, PAGE_BYTES)
        found = {
            row.uid: self._value(row)
            for part in chunks(row.uid for row in kept)
            for row in self._c.execute(select(s).where(s.c.uid.in_(part)))
        }
        return [found[row.uid] for row in kept], more

    def count(self, user: str) -> int:
        """Count a user's."""
        return self._count(s, s.c.user == user)

    def all_of(self, context: TenantContext, user: str) -> list[str]:
        """Return the uids of a user's."""
        query = self._within(context, select(s.c.uid))
        return list(self._c.scalars(query.where(s.c.user == user)))

    def active_uids(self, context: TenantContext, user: str | None = None) -> list[str]:
        """Return the uids of those with which there is something to do, the oldest first."""
        query = self._within(context, select(s.c.uid))
        query = query.where(s.c.phase.not_in(_ENDED)).order_by(s.c.uid)
        return list(self._c.scalars(query if user is None else query.where(s.c.user == user)))

    def trials(self, context: TenantContext, uid: str) -> list[SweepTrial]:
        """Return the trials of one, by number."""
        query = self._within(context, select(t).join(s, s.c.uid == t.c.sweep))
        return self._list(_trials, query.where(t.c.sweep == uid).order_by(t.c.number))

    def put_trials(self, uid: str, trials: Iterable[SweepTrial]) -> None:
        """Store trials of one, new or changed."""
        for trial in trials:
            self._store(_trials, trial, sweep=uid)

"""Sweeps and their trials."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import msgspec
from sqlalchemy import Select, delete, func, select

from mlp_hub.domain.jobs import names
from mlp_hub.domain.jobs.sweep import (
    ENDED_SWEEPS,
    Budget,
    Sweep,
    SweepPhase,
    SweepSpec,
    SweepTrial,
    TrialState,
)
from mlp_hub.domain.tenants.tenant_context import TenantContext
from mlp_hub.store import codec
from mlp_hub.store.repos.base import Repo, bounded, chunks, within
from mlp_hub.store.tables import sweep as s
from mlp_hub.store.tables import sweep_trial as t

_spec = msgspec.json.Decoder(SweepSpec)
_budget = msgspec.json.Decoder(Budget)
PAGE_BYTES = 4 * 2**20
"""Of specifications on one page; one may have 2 MiB."""
_IN_COLUMNS = {"number", "job", "state", "message"}
_IN_DATA = tuple(f.name for f in dataclasses.fields(SweepTrial) if f.name not in _IN_COLUMNS)
_ENDED = [p.value for p in sorted(ENDED_SWEEPS)]


class Sweeps(Repo):
    """The sweeps of all users. One is here until the last of its trials is deleted with it."""

    __slots__ = ()

    def get(self, context: TenantContext, uid: str) -> Sweep | None:
        """Return one."""
        return self._first(context, select(s).where(s.c.uid == uid))

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
        query = within(
            select(s.c.uid, func.length(s.c.spec).label("size")), context, s.c.user, s.c.tenant
        ).where(s.c.user == user)
        if tenant is not None:
            query = query.where(s.c.tenant == tenant)
        if before is not None:
            query = query.where(s.c.uid < before)
        rows = self._c.execute(query.order_by(s.c.uid.desc()).limit(limit + 1)).all()
        kept, more = bounded(rows, lambda row: int(row.size), limit, PAGE_BYTES)
        found = {
            row.uid: _sweep_of(row)
            for part in chunks(row.uid for row in kept)
            for row in self._c.execute(select(s).where(s.c.uid.in_(part)))
        }
        return [found[row.uid] for row in kept], more

    def count(self, user: str) -> int:
        """Count a user's."""
        return int(self._c.scalar(select(func.count()).select_from(s).where(s.c.user == user)) or 0)

    def all_of(self, context: TenantContext, user: str) -> list[str]:
        """Return the uids of a user's."""
        query = within(select(s.c.uid), context, s.c.user, s.c.tenant)
        return list(self._c.scalars(query.where(s.c.user == user)))

    def active_uids(self, context: TenantContext, user: str | None = None) -> list[str]:
        """Return the uids of those with which there is something to do, the oldest first."""
        query = within(select(s.c.uid), context, s.c.user, s.c.tenant)
        query = query.where(s.c.phase.not_in(_ENDED)).order_by(s.c.uid)
        return list(self._c.scalars(query if user is None else query.where(s.c.user == user)))

    def put(self, sweep: Sweep) -> None:
        """Store one, new or changed."""
        self._c.execute(
            self._upsert(s, ("uid",)),
            {
                "uid": sweep.uid,
                "user": sweep.spec.job.user,
                "name": sweep.name,
                "run": sweep.run,
                "tenant": sweep.spec.job.tenant,
                "spec": codec.dumps(sweep.spec),
                "budget": codec.dumps(sweep.budget),
                "phase": sweep.phase.value,
                "outcome": sweep.outcome,
                "made_at": sweep.made_at,
                "ended_at": sweep.ended_at,
                "not_before": sweep.not_before,
                "message": codec.message_text(sweep.message),
            },
        )

    def remove(self, uid: str) -> None:
        """Forget one with its trials; its name is free again."""
        self._c.execute(delete(s).where(s.c.uid == uid))

    def trials(self, context: TenantContext, uid: str) -> list[SweepTrial]:
        """Return the trials of one, by number."""
        query = within(select(t).join(s, s.c.uid == t.c.sweep), context, s.c.user, s.c.tenant)
        query = query.where(t.c.sweep == uid).order_by(t.c.number)
        return [_trial_of(row) for row in self._c.execute(query)]

    def put_trials(self, uid: str, trials: Iterable[SweepTrial]) -> None:
        """Store trials of one, new or changed."""
        for trial in trials:
            self._c.execute(
                self._upsert(t, ("sweep", "number")),
                {
                    "sweep": uid,
                    "number": trial.number,
                    "job": trial.job,
                    "state": trial.state.value,
                    "data": codec.dumps({name: getattr(trial, name) for name in _IN_DATA}),
                    "message": codec.message_text(trial.message),
                },
            )

    def _first(self, context: TenantContext, query: Select[Any]) -> Sweep | None:
        row = self._c.execute(within(query, context, s.c.user, s.c.tenant)).first()
        return None if row is None else _sweep_of(row)


def _sweep_of(row: Any) -> Sweep:
    return Sweep(
        uid=row.uid,
        spec=_spec.decode(row.spec),
        run=row.run,
        phase=SweepPhase(row.phase),
        budget=_budget.decode(row.budget),
        made_at=row.made_at,
        outcome=row.outcome,
        ended_at=row.ended_at,
        not_before=row.not_before,
        message=codec.message_of(row.message),
    )


def _trial_of(row: Any) -> SweepTrial:
    data = codec.load_object(row.data)
    data["curve"] = tuple((step, value) for step, value in data["curve"])
    return SweepTrial(
        number=row.number,
        job=row.job,
        state=TrialState(row.state),
        message=codec.message_of(row.message),
        **data,
    )

"""What was done and why: the audit log, and the explanations of the scheduler's decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Select, Table, delete, select

from mlp_hub.store import codec
from mlp_hub.store.records import AuditEntry, OfJob, StoredDecision
from mlp_hub.store.repos.base import Repo
from mlp_hub.store.tables import audit, decision, job


class Decisions(Repo):
    """Why the scheduler did what it did with jobs."""

    __slots__ = ()

    def add(self, records: Sequence[StoredDecision]) -> None:
        """Store some."""
        rows = [{"job": r.job, "time": r.time, "kind": r.kind, "text": codec.text(r.text)} for r in records]
        self._insert_all(decision, rows)

    def of(self, uid: str, most: int) -> list[StoredDecision]:
        """Return the last `most` of a job, the oldest first."""
        d = decision
        query = select(d).where(d.c.job == uid).order_by(d.c.id.desc()).limit(most)
        return [StoredDecision(r.job, r.time, r.kind, r.text) for r in self._c.execute(query)][::-1]

    def page(
        self,
        *,
        kind: str | None = None,
        user: str | None = None,
        name: str | None = None,
        since: float | None = None,
        until: float | None = None,
        limit: int = 100,
        before: int | None = None,
        most_bytes: int | None = None,
    ) -> tuple[list[OfJob], int | None]:
        """Return decisions on all jobs that are there, the newest first, and the `before` of the next page (None: the last).

        Filters that are None let everything through; `since` is in, `until` is not. A page is bounded in bytes as those of
        the audit log are.
        """
        d = decision
        query = select(d, job.c.user, job.c.name, job.c.tenant).join(job, job.c.uid == d.c.job)
        query = _between(query.order_by(d.c.id.desc()).limit(limit + 1), d, since, until, before)
        for column, value in ((d.c.kind, kind), (job.c.user, user), (job.c.name, name)):
            if value is not None:
                query = query.where(column == value)
        found: list[OfJob] = []
        last, size = 0, 0
        for r in self._c.execute(query):
            size += len(r.text)
            if len(found) == limit or (found and most_bytes is not None and size > most_bytes):
                return found, last
            last = r.id
            found.append(OfJob(r.user, r.name, r.tenant, StoredDecision(r.job, r.time, r.kind, r.text)))
        return found, None

    def trim(self, uid: str, keep: int) -> int:
        """Remove all but the last `keep` of a job, so that one that is stopped and started for ever stays small."""
        d = decision
        first = select(d.c.id).where(d.c.job == uid).order_by(d.c.id.desc()).offset(keep).limit(1)
        last = self._c.scalar(first)
        if last is None:
            return 0
        return int(self._c.execute(delete(d).where(d.c.job == uid, d.c.id <= last)).rowcount)

    def sweep(self, before: float) -> int:
        """Remove those from before a time; return how many."""
        return int(self._c.execute(delete(decision).where(decision.c.time < before)).rowcount)


class Audit(Repo):
    """Every change: who, what, when. Rows are added and never changed; the oldest are forgotten at last."""

    __slots__ = ()

    def add(
        self,
        now: float,
        actor: str,
        action: str,
        name: str,
        *,
        tenant: str | None = None,
        detail: Mapping[str, object] | None = None,
    ) -> None:
        """Write down that `actor` did `action` to the object of this name."""
        self._c.execute(
            audit.insert().values(
                time=now,
                actor=actor,
                action=action,
                object=name,
                tenant=tenant,
                detail=codec.dumps(dict(detail or {})),
            )
        )

    def page(
        self,
        *,
        tenant: str | None = None,
        actor: str | None = None,
        action: str | None = None,
        name: str | None = None,
        since: float | None = None,
        until: float | None = None,
        limit: int = 100,
        before: int | None = None,
        most_bytes: int | None = None,
    ) -> tuple[list[AuditEntry], int | None]:
        """Return entries, the newest first, and the id to pass as `before` for the next page (None: this was the last).

        Filters that are None let everything through; `since` is in, `until` is not. An action that ends with a dot means all
        that begin with it. A page holds fewer than `limit` where details are long: about `most_bytes` of them, and one entry
        at least.
        """
        query = _between(
            select(audit).order_by(audit.c.id.desc()).limit(limit + 1), audit, since, until, before
        )
        equal = ((audit.c.tenant, tenant), (audit.c.actor, actor), (audit.c.object, name))
        for column, value in equal:
            if value is not None:
                query = query.where(column == value)
        if action is not None:
            begins = audit.c.action.startswith(action, autoescape=True)
            query = query.where(begins if action.endswith(".") else audit.c.action == action)
        found: list[AuditEntry] = []
        size = 0
        for r in self._c.execute(query):
            size += len(r.detail)
            if len(found) == limit or (found and most_bytes is not None and size > most_bytes):
                return found, found[-1].id
            detail = codec.load_object(r.detail)
            found.append(AuditEntry(r.id, r.time, r.actor, r.action, r.object, r.tenant, detail))
        return found, None

    def sweep(self, before: float, most: int) -> int:
        """Forget entries from before a time, the oldest first and not more than so many; return how many."""
        old = select(audit.c.id).where(audit.c.time < before).order_by(audit.c.id).limit(most)
        return int(self._c.execute(delete(audit).where(audit.c.id.in_(old))).rowcount)


def _between(
    query: Select[Any], table: Table, since: float | None, until: float | None, before: int | None
) -> Select[Any]:
    """Leave what was written in [since, until), and before the row of this id."""
    if since is not None:
        query = query.where(table.c.time >= since)
    if until is not None:
        query = query.where(table.c.time < until)
    return query if before is None else query.where(table.c.id < before)

"""What was done by whom, and what the scheduler decided about which job: read a page at a time."""

from __future__ import annotations

from collections.abc import Sequence

from mlp_api import audit as api
from mlp_hub.service.decisions import to_wire
from mlp_hub.service.wire import when
from mlp_hub.store.database import Database

MOST_BYTES = 512 * 2**10
"""Of details on one page, about."""
Cursor = str | None


class AuditLog:
    """Reads what is stored anyway. Times are seconds since the epoch; a cursor is what the page before gave."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def entries(
        self,
        *,
        tenant: str | None = None,
        actor: str | None = None,
        action: str | None = None,
        name: str | None = None,
        since: float | None = None,
        until: float | None = None,
        limit: int = 100,
        cursor: Cursor = None,
    ) -> tuple[Sequence[api.AuditEntry], Cursor]:
        """Return changes, the newest first, and the cursor of the next page. An action may be the first part of some: `quota.`."""
        found, following = await self._db.read(
            lambda tx: tx.audit.page(
                tenant=tenant,
                actor=actor,
                action=action,
                name=name,
                since=since,
                until=until,
                limit=limit,
                before=_before(cursor),
                most_bytes=MOST_BYTES,
            )
        )
        entries = [
            api.AuditEntry(
                id=e.id,
                time=when(e.time),
                actor=e.actor,
                action=e.action,
                object=e.name,
                tenant=e.tenant,
                detail=dict(e.detail),
            )
            for e in found
        ]
        return entries, _cursor(following)

    async def decisions(
        self,
        *,
        kind: str | None = None,
        user: str | None = None,
        job: str | None = None,
        since: float | None = None,
        until: float | None = None,
        limit: int = 100,
        cursor: Cursor = None,
    ) -> tuple[Sequence[api.JobDecision], Cursor]:
        """Return decisions on all jobs with all names in them, the newest first, and the cursor of the next page."""
        found, following = await self._db.read(
            lambda tx: tx.decisions.page(
                kind=kind,
                user=user,
                name=job,
                since=since,
                until=until,
                limit=limit,
                before=_before(cursor),
                most_bytes=MOST_BYTES,
            )
        )
        decisions = [
            api.JobDecision(
                user=one.user,
                job=one.name,
                tenant=one.tenant,
                decision=to_wire(one.decision, everything=True),
            )
            for one in found
        ]
        return decisions, _cursor(following)


def _before(cursor: Cursor) -> int | None:
    return None if cursor is None else int(cursor)


def _cursor(following: int | None) -> Cursor:
    return None if following is None else str(following)

"""Pages of the audit log: people's actions, and the scheduler's decisions about jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mlp_api import audit as api
from mlp_api.localized import Text
from mlp_hub.domain.jobs import names
from mlp_hub.domain.span import NEWEST, RowSpan
from mlp_hub.service.reasons.rows import to_wire
from mlp_hub.service.support.units import when
from mlp_hub.store.database import Database
from mlp_hub.store.records import AuditRecord
from mlp_hub.store.tx import Tx
from mlp_language.message import ALL, Message

MOST_DELETED = 1000
"""Tuning: entries of the audit log that are forgotten in one sweep: size of a lot, for how long others wait behind it."""
MOST_BYTES = 512 * 2**10
"""Safety: bytes of details on one page, about: bounds what an answer takes."""


class AuditLog:
    """Reads what is stored anyway, the newest first; with each page comes the `before` of the next one, None after the last."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def entries(
        self,
        span: RowSpan = NEWEST,
        *,
        tenant: str | None = None,
        actor: str | None = None,
        action: str | None = None,
        name: str | None = None,
        own: bool = False,
    ) -> tuple[Sequence[api.AuditEntry], int | None]:
        """Return a page of changes; an action can be a prefix: `quota.`.

        `own` is for the tenant itself: changes of an earlier tenant with the same name are not shown.
        Raises `NotFound`.
        """
        page = replace(span, most_bytes=MOST_BYTES)

        def look(tx: Tx) -> tuple[list[AuditRecord], int | None]:
            asked = page
            if own and tenant is not None:
                made = tx.tenants.made_at(tenant)
                asked = replace(page, since=made if page.since is None else max(page.since, made))
            return tx.audit.page(asked, tenant=tenant, actor=actor, action=action, name=name)

        found, following = await self._db.read(look)
        entries = [
            api.AuditEntry(
                id=e.id,
                time=when(e.time),
                actor=e.actor,
                action=e.action,
                object=e.name,
                tenant=e.tenant,
                detail={
                    key: Text(value) if isinstance(value, Message) else value
                    for key, value in e.detail.items()
                },
            )
            for e in found
        ]
        return entries, following

    async def decisions(
        self,
        span: RowSpan = NEWEST,
        *,
        kind: str | None = None,
        user: str | None = None,
        job: str | None = None,
    ) -> tuple[Sequence[api.JobDecision], int | None]:
        """Return a page of decisions on all jobs with all names in them; a `job` is all runs of a name, or one."""
        name, run = (None, None) if job is None else names.parse_reference(job) or (job, 0)
        page = replace(span, most_bytes=MOST_BYTES)
        found, following = await self._db.read(
            lambda tx: tx.decisions.page(page, kind=kind, user=user, name=name, run=run)
        )
        decisions = [
            api.JobDecision(
                user=one.user,
                job=one.name,
                run=one.run,
                tenant=one.tenant,
                decision=to_wire(one.decision, ALL),
            )
            for one in found
        ]
        return decisions, following

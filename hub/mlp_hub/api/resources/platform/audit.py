"""Changes with their actors, and decisions of the scheduler."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from mlp_api.jobs.jobs import JOB_PATTERN
from mlp_api.platform.audit import AuditEntry, AuditHead, JobDecision
from mlp_api.types import CURSOR_PATTERN, LINE_PATTERN, Name
from mlp_hub.api.auth.scopes import CLUSTER_READ
from mlp_hub.api.edge.call import Call, Reply
from mlp_hub.api.edge.paging import ListPage
from mlp_hub.api.routes import Relation, Route
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.span import RowSpan
from mlp_hub.service.audit.log import COLUMNS
from mlp_hub.service.support.csv_text import csv_bytes
from mlp_language.message import msg

NDJSON = "text/plain; charset=utf-8"
"""Given: generators of clients know no media type of lines of JSON."""
Text = Annotated[str, Meta(min_length=1, max_length=255, pattern=LINE_PATTERN)]
Time = Annotated[datetime, Meta(tz=True)]


class SpanQuery(ListPage):
    """Page of the entries that were written from `since` on and before `until`."""

    cursor: Annotated[str, Meta(pattern=CURSOR_PATTERN)] | None = None
    since: Time | None = None
    until: Time | None = None


class AuditQuery(SpanQuery, forbid_unknown_fields=True):
    """Which entries. An `action` that ends with a dot means all that begin so, as `tenant.`."""

    actor: Text | None = None
    action: Annotated[str, Meta(min_length=1, max_length=64, pattern=LINE_PATTERN)] | None = None
    object: Text | None = None
    tenant: Name | None = None


class AuditFileQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which entries are in a file; as for `GET /audit`."""

    since: Time | None = None
    until: Time | None = None
    actor: Text | None = None
    action: Annotated[str, Meta(min_length=1, max_length=64, pattern=LINE_PATTERN)] | None = None
    object: Text | None = None
    tenant: Name | None = None


class TenantAuditQuery(SpanQuery, forbid_unknown_fields=True):
    """Which entries of a tenant's."""

    actor: Text | None = None
    action: Annotated[str, Meta(min_length=1, max_length=64, pattern=LINE_PATTERN)] | None = None


class TenantAuditFileQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which entries of a tenant, and of those below it, are in a file; as for `GET /tenants/{tenant}/audit`."""

    since: Time | None = None
    until: Time | None = None
    actor: Text | None = None
    action: Annotated[str, Meta(min_length=1, max_length=64, pattern=LINE_PATTERN)] | None = None


class DecisionsQuery(SpanQuery, forbid_unknown_fields=True):
    """Which decisions; `job` is a name, with all its runs, or NAME@RUN."""

    kind: Literal["admitted", "preempted", "resized"] | None = None
    user: Text | None = None
    job: Annotated[str, Meta(pattern=JOB_PATTERN, max_length=60)] | None = None


async def entries(call: Call) -> Reply:
    """List who changed what: tenants, members, windows, and what the hub did by itself; the newest first.

    Kept for `MLP_KEEP_AUDIT_DAYS`. A page may hold fewer than `limit` where entries are long.
    """
    query: AuditQuery = call.query
    found, following = await call.platform.audit.entries(
        span_of(query), tenant=query.tenant, actor=query.actor, action=query.action, name=query.object
    )
    return audit_page(call, found, following)


async def as_csv(call: Call) -> Reply:
    """Return all entries as CSV, the newest first, 1,000,000 at most.

    A text that could be a formula begins with an apostrophe; `detail` is JSON.
    """
    return csv_file(call, call.platform.audit.export(**_asked(call)), "audit.csv")


def csv_file(call: Call, found: AsyncIterator[Sequence[AuditEntry]], name: str) -> Reply:
    """Answer with entries as a file of CSV."""

    async def lines() -> AsyncIterator[bytes]:
        yield csv_bytes([COLUMNS])
        async for page in found:
            yield csv_bytes(
                (
                    e.id,
                    e.time,
                    e.actor,
                    e.action,
                    e.object,
                    e.tenant,
                    call.encode(e.detail).decode(),
                )
                for e in page
            )

    return _file(lines(), name, "text/csv; charset=utf-8")


async def as_lines(call: Call) -> Reply:
    """Return all entries as JSON, one a line, the newest first, 1,000,000 at most."""
    return lines_file(call, call.platform.audit.export(**_asked(call)), "audit.jsonl")


def lines_file(call: Call, found: AsyncIterator[Sequence[AuditEntry]], name: str) -> Reply:
    """Answer with entries as a file of JSON, one a line."""

    async def lines() -> AsyncIterator[bytes]:
        async for page in found:
            yield b"".join(call.encode(entry) + b"\n" for entry in page)

    return _file(lines(), name, NDJSON)


def _asked(call: Call) -> dict[str, Any]:
    """Return what an export is asked for, as arguments."""
    query: AuditFileQuery = call.query
    span = span_of(SpanQuery(since=query.since, until=query.until))
    return {
        "span": span,
        "tenant": query.tenant,
        "actor": query.actor,
        "action": query.action,
        "name": query.object,
    }


def _file(lines: AsyncIterator[bytes], name: str, media: str) -> Reply:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Reply(stream=lines, media=media, headers=headers)


async def head(call: Call) -> AuditHead:
    """Show the end of the audit log's chain of hashes, and when it was checked last."""
    return await call.platform.audit.head()


async def decisions(call: Call) -> Reply:
    """List what the scheduler decided about all jobs, and why then, why there, why this one; the newest first.

    Kept for 14 days (`MLP_KEEP_DECISIONS_DAYS`), and with the job at most. A page may hold fewer than `limit` where they are long.
    """
    query: DecisionsQuery = call.query
    found, following = await call.platform.audit.decisions(
        span_of(query), kind=query.kind, user=query.user, job=query.job
    )
    return audit_page(call, found, following)


def span_of(query: SpanQuery) -> RowSpan:
    """Return the rows that are asked for. Raises `Invalid`."""
    since = None if query.since is None else query.since.timestamp()
    until = None if query.until is None else query.until.timestamp()
    if since is not None and until is not None and until <= since:
        raise Refused(Reason.INVALID, msg("until is not after since; give a later until"))
    return RowSpan(since, until, query.limit, None if query.cursor is None else int(query.cursor))


def audit_page(call: Call, found: Any, following: int | None) -> Reply:
    """Answer with a page, and where the next one begins."""
    headers = {} if following is None else {"X-Next-Cursor": str(following)}
    return Reply(call.encode(found), headers=headers)


P, C = Relation.PLATFORM, CLUSTER_READ
ROUTES = (
    Route("GET", "/audit", entries, "Record of changes", P, C, query=AuditQuery, reply=list[AuditEntry]),
    Route("GET", "/audit:head", head, "End of the audit log's chain", P, C, reply=AuditHead),
    Route(
        "GET",
        "/audit:csv",
        as_csv,
        "Record of changes as CSV",
        P,
        C,
        query=AuditFileQuery,
        reply=str,
        media="text/csv",
    ),
    Route(
        "GET",
        "/audit:lines",
        as_lines,
        "Record of changes as lines of JSON",
        P,
        C,
        query=AuditFileQuery,
        reply=str,
        media="text/plain",
    ),
    Route(
        "GET",
        "/decisions",
        decisions,
        "Decisions of the scheduler",
        P,
        C,
        query=DecisionsQuery,
        reply=list[JobDecision],
    ),
)

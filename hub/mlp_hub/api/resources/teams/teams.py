"""Requests that someone decides on: more quota for a tenant, a place in one; and a tenant's audit log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from mlp_api.platform.audit import AuditEntry
from mlp_api.teams.teams import (
    JoinAsk,
    JoinRequest,
    MemberCap,
    MemberCapSet,
    QuotaAnswer,
    QuotaAsk,
    QuotaRequest,
    Teams,
)
from mlp_api.types import Member
from mlp_hub.api.auth.scopes import CLUSTER_READ, TENANTS_READ, TENANTS_WRITE
from mlp_hub.api.edge.call import Call, Reply
from mlp_hub.api.edge.decode import clip
from mlp_hub.api.resources.platform.audit import (
    SpanQuery,
    TenantAuditFileQuery,
    TenantAuditQuery,
    audit_page,
    csv_file,
    lines_file,
    span_of,
)
from mlp_hub.api.routes import Relation, Route
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.notices.notice import NoticeKind
from mlp_hub.service.audit.log import OwnEntries
from mlp_language.message import msg


async def list_(call: Call) -> Sequence[QuotaRequest]:
    """List what a tenant asked for, the newest first, with the answers."""
    return await call.platform.quota_requests.of_tenant(call.params["tenant"])


async def ask(call: Call) -> QuotaRequest:
    """Ask the platform's admins for more quota. One request waits for an answer at a time."""
    wanting = call.platform.notices.outbox.wanting(NoticeKind.ASKED)
    people = [await call.service.hub.person(name) for name in wanting]
    return await call.platform.quota_requests.ask(
        call.params["tenant"],
        call.body,
        actor=call.principal.name,
        of=[one.name for one in people if one is not None and one.admin],
    )


async def withdraw(call: Call) -> QuotaRequest:
    """Take a request back that nobody has decided on."""
    return await call.platform.quota_requests.withdraw(
        call.params["tenant"], call.params["request"], actor=call.principal.name
    )


async def open_ones(call: Call) -> Sequence[QuotaRequest]:
    """List the requests of all tenants that wait for an answer, the oldest first."""
    return await call.platform.quota_requests.open_ones()


async def accept(call: Call) -> QuotaRequest:
    """Give a tenant what it asked for. `POST /tenants/{tenant}:preview` says before what that would do."""
    return await call.platform.quota_requests.accept(
        call.params["tenant"], call.params["request"], _word(call), actor=call.principal.name
    )


async def decline(call: Call) -> QuotaRequest:
    """Decline a request, with a word to those who asked."""
    return await call.platform.quota_requests.decline(
        call.params["tenant"], call.params["request"], _word(call), actor=call.principal.name
    )


def _word(call: Call) -> str:
    return "" if call.body is None else str(call.body.word)


async def teams(call: Call) -> Teams:
    """List the tenants that somebody may ask for a place, and which they have asked."""
    return await call.platform.joining.teams(call.user)


async def join(call: Call) -> JoinRequest:
    """Ask for a place in a tenant; its admins decide. Asking again changes nothing."""
    return await call.platform.joining.ask(call.user, call.body)


async def take_back(call: Call) -> JoinRequest:
    """Ask for a place no more."""
    return await call.platform.joining.take_back(call.user, call.params["team"])


async def joins(call: Call) -> Sequence[JoinRequest]:
    """List who asks for a place in a tenant, who has waited longest first."""
    return await call.platform.joining.waiting(call.params["tenant"])


async def approve(call: Call) -> Member:
    """Admit a user who asks for a place.

    A user who was shut out of the hub meanwhile is not admitted, and the request is removed.
    """
    tenant, user = call.params["tenant"], call.user
    if await call.service.hub.person(user) is None:
        await call.platform.joining.forget(user)
        raise Refused(Reason.NOT_FOUND, msg("{user} is no longer an approved user", user=clip(user)))
    return await call.platform.joining.approve(tenant, user, actor=call.principal.name)


async def turn_away(call: Call) -> JoinRequest:
    """Decline a request for a place. It may be asked for again."""
    return await call.platform.joining.decline(call.params["tenant"], call.user, actor=call.principal.name)


async def audit(call: Call) -> Reply:
    """List who changed what in a tenant: its members, jobs, requests, runtimes; the newest first."""
    query: TenantAuditQuery = call.query
    found, following = await call.platform.audit.entries(
        span_of(query), actor=query.actor, action=query.action, own=OwnEntries(call.params["tenant"])
    )
    return audit_page(call, found, following)


async def audit_csv(call: Call) -> Reply:
    """Return the entries of a tenant and of all tenants below it as CSV, the newest first, 1,000,000 at most.

    Entries of a tenant below it begin after its move there. A text that could be a formula begins with an apostrophe; `detail` is JSON.
    """
    return csv_file(call, await _own_entries(call), f"audit-{call.params['tenant']}.csv")


async def audit_lines(call: Call) -> Reply:
    """Return the entries of a tenant and of all tenants below it as JSON, one a line, the newest first, 1,000,000 at most.

    Entries of a tenant below it begin after its move there.
    """
    return lines_file(call, await _own_entries(call), f"audit-{call.params['tenant']}.jsonl")


async def _own_entries(call: Call) -> AsyncIterator[Sequence[AuditEntry]]:
    query: TenantAuditFileQuery = call.query
    tenant = call.params["tenant"]
    await call.platform.tenants.get(tenant)  # one that is not there is refused before the file begins
    span = span_of(SpanQuery(since=query.since, until=query.until))
    own = OwnEntries(tenant, below=True)
    return call.platform.audit.export(span, actor=query.actor, action=query.action, own=own)


async def caps(call: Call) -> Sequence[MemberCap]:
    """List how much a member may hold at once, that of everybody first."""
    return await call.platform.member_caps.of_tenant(call.params["tenant"])


async def set_cap(call: Call) -> Sequence[MemberCap]:
    """Set a limit on the use of a member, or of everybody, at once.

    Running work continues. Work that waits then also waits for the limit.
    """
    return await call.platform.member_caps.set_cap(
        call.params["tenant"], call.body, actor=call.principal.name
    )


_REQUESTS = "/tenants/{tenant}/quota_requests"
_REQUEST = "/tenants/{tenant}/quota_requests/{request}"
_JOIN = "/tenants/{tenant}/joins/{user}"
R, W = TENANTS_READ, TENANTS_WRITE
A, P, S = Relation.TENANT_ADMIN, Relation.PLATFORM, Relation.SELF

ROUTES = (
    Route("GET", _REQUESTS, list_, "What a tenant asked for", A, R, reply=list[QuotaRequest]),
    Route(
        "POST",
        _REQUESTS,
        ask,
        "Ask for more quota",
        A,
        W,
        body=QuotaAsk,
        reply=QuotaRequest,
        status=201,
        idempotent=True,
        bucket="change",
    ),
    Route("DELETE", _REQUEST, withdraw, "Take a request back", A, W, reply=QuotaRequest, bucket="change"),
    Route(
        "PUT",
        f"{_REQUEST}:accept",
        accept,
        "Accept a request for quota",
        P,
        W,
        body=QuotaAnswer,
        body_optional=True,
        reply=QuotaRequest,
        recent=True,
    ),
    Route(
        "PUT",
        f"{_REQUEST}:decline",
        decline,
        "Decline a request for quota",
        P,
        W,
        body=QuotaAnswer,
        body_optional=True,
        reply=QuotaRequest,
    ),
    Route(
        "GET",
        "/quota_requests",
        open_ones,
        "Open requests for quota",
        P,
        CLUSTER_READ,
        reply=list[QuotaRequest],
    ),
    Route("GET", "/users/{user}/teams", teams, "Teams that may be asked for a place", S, R, reply=Teams),
    Route(
        "POST",
        "/users/{user}/teams",
        join,
        "Ask for a place in a team",
        S,
        W,
        body=JoinAsk,
        reply=JoinRequest,
        status=201,
        idempotent=True,
        bucket="change",
    ),
    Route(
        "DELETE",
        "/users/{user}/teams/{team}",
        take_back,
        "Ask no more",
        S,
        W,
        reply=JoinRequest,
        bucket="change",
    ),
    Route("GET", "/tenants/{tenant}/joins", joins, "Who asks for a place", A, R, reply=list[JoinRequest]),
    Route("PUT", f"{_JOIN}:approve", approve, "Take in who asks", A, W, reply=Member, bucket="change"),
    Route("PUT", f"{_JOIN}:decline", turn_away, "Decline who asks", A, W, reply=JoinRequest, bucket="change"),
    Route(
        "GET",
        "/tenants/{tenant}/audit",
        audit,
        "Who changed what in a tenant",
        A,
        R,
        query=TenantAuditQuery,
        reply=list[AuditEntry],
    ),
    Route(
        "GET",
        "/tenants/{tenant}/audit:csv",
        audit_csv,
        "Record of changes in a tenant as CSV",
        A,
        R,
        query=TenantAuditFileQuery,
        reply=str,
        media="text/csv",
    ),
    Route(
        "GET",
        "/tenants/{tenant}/audit:lines",
        audit_lines,
        "Record of changes in a tenant as lines of JSON",
        A,
        R,
        query=TenantAuditFileQuery,
        reply=str,
        media="text/plain",
    ),
    Route(
        "GET", "/tenants/{tenant}/caps", caps, "Caps of members", Relation.MEMBER, R, reply=list[MemberCap]
    ),
    Route(
        "PUT",
        "/tenants/{tenant}/caps",
        set_cap,
        "Set the cap of a member",
        A,
        W,
        body=MemberCapSet,
        reply=list[MemberCap],
        bucket="change",
    ),
)

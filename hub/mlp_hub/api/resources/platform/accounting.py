"""Held, used and idle amounts with their cost, as lines, CSV and a month's report; the price list."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Annotated
from urllib.parse import quote

from msgspec import Meta, Struct

from mlp_api.platform.accounting import BudgetSet, BudgetState, Prices, UsageLines
from mlp_api.types import LINE_PATTERN, Name
from mlp_hub.api.auth.scopes import CLUSTER_READ, CLUSTER_WRITE, JOBS_READ, TENANTS_READ, TENANTS_WRITE
from mlp_hub.api.edge.call import Call, Reply
from mlp_hub.api.routes import Relation, Route
from mlp_hub.service.accounting import focus, report
from mlp_hub.service.accounting.service import asked_of
from mlp_hub.service.accounting.sums import UsageAsked

Text = Annotated[str, Meta(min_length=1, max_length=255, pattern=LINE_PATTERN)]
DayText = Annotated[str, Meta(min_length=1, max_length=20, pattern=LINE_PATTERN)]


class SpanAsked(Struct, kw_only=True):
    """Days from `since` to before `until`, as 2031-03-01, or a `month`, as 2031-03; without them the last 30 days. UTC.

    `by` splits the lines: some of day, month, tenant, user, work, name and gpu_kind, separated by commas.
    """

    since: DayText | None = None
    until: DayText | None = None
    month: DayText | None = None
    by: Annotated[str, Meta(max_length=100, pattern=LINE_PATTERN)] = ""
    work: Text | None = None


class LinesQuery(SpanAsked, forbid_unknown_fields=True):
    """Which lines, and which page of them."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    cursor: Annotated[int, Meta(ge=0, le=1_000_000)] = 0


class OfAllQuery(LinesQuery, forbid_unknown_fields=True):
    """Which lines, also of one tenant or one user only."""

    tenant: Name | None = None
    user: Text | None = None


class OfTenantQuery(LinesQuery, forbid_unknown_fields=True):
    """Which lines, also of one member only."""

    user: Text | None = None


class FileQuery(SpanAsked, forbid_unknown_fields=True):
    """Which lines are in a file."""


class MonthQuery(Struct, forbid_unknown_fields=True):
    """Which month, as 2031-03; without one the last that has ended."""

    month: DayText | None = None


async def own(call: Call) -> UsageLines:
    """Show what a user's work held and used in all tenants, and its cost."""
    return await _lines(call, user=call.user)


async def of_tenant(call: Call) -> UsageLines:
    """Show what a tenant's members held and used, and its cost, as its admin."""
    return await _lines(call, tenant=call.params["tenant"], user=call.query.user)


async def of_all(call: Call) -> UsageLines:
    """Show what everybody held and used, its cost, and the amounts of the nodes, as a platform admin."""
    query: OfAllQuery = call.query
    return await _lines(call, nodes=True, tenant=query.tenant, user=query.user)


async def own_csv(call: Call) -> Reply:
    """Return the same as CSV with the columns of FOCUS; a text that could be a formula begins with an apostrophe."""
    return await _file(call, user=call.user)


async def csv_of_tenant(call: Call) -> Reply:
    """Return a tenant's as CSV with the columns of FOCUS, as its admin."""
    return await _file(call, tenant=call.params["tenant"])


async def csv_of_all(call: Call) -> Reply:
    """Return everybody's as CSV with the columns of FOCUS, as a platform admin."""
    return await _file(call)


async def report_of_tenant(call: Call) -> Reply:
    """Return the report of a tenant's month as Markdown, for people who pay, as its admin."""
    return await _report(call, tenant=call.params["tenant"])


async def report_of_all(call: Call) -> Reply:
    """Return the report of everybody's month as Markdown, for people who pay, as a platform admin."""
    return await _report(call)


async def prices(call: Call) -> Prices:
    """Show the price list."""
    return await call.platform.accounting.prices()


async def set_prices(call: Call) -> Prices:
    """Replace the price list. Costs are computed with it, also those of the past."""
    return await call.platform.accounting.set_prices(call.body, actor=call.principal.name)


async def remove_prices(call: Call) -> str:
    """Remove the price list. Costs are not shown any more."""
    await call.platform.accounting.remove_prices(actor=call.principal.name)
    return ""


async def budget(call: Call) -> BudgetState:
    """Show a tenant's budget and its spent part."""
    return await call.platform.budgets.get(call.params["tenant"])


async def budgets(call: Call) -> Sequence[BudgetState]:
    """List the budgets of all tenants with their spent parts."""
    return await call.platform.budgets.all()


async def own_budgets(call: Call) -> Sequence[BudgetState]:
    """List the budgets of a user's tenants with their spent parts."""
    return await call.platform.budgets.of_user(call.user)


async def set_budget(call: Call) -> BudgetState:
    """Set a tenant's budget. Each level has one notice in a period, to admins."""
    return await call.platform.budgets.set_budget(call.params["tenant"], call.body, actor=call.principal.name)


async def remove_budget(call: Call) -> str:
    """Remove a tenant's budget. Work that it held back starts."""
    await call.platform.budgets.remove(call.params["tenant"], actor=call.principal.name)
    return ""


def _asked(call: Call, **where: str | None) -> UsageAsked:
    query: SpanAsked = call.query
    return asked_of(
        now=call.service.clock(),
        since=query.since,
        until=query.until,
        month=query.month,
        by=query.by,
        where={**where, "work": query.work},
    )


async def _lines(call: Call, *, nodes: bool = False, **where: str | None) -> UsageLines:
    query: LinesQuery = call.query
    asked = _asked(call, **where)
    return await call.platform.accounting.lines(asked, limit=query.limit, start=query.cursor, nodes=nodes)


async def _file(call: Call, **where: str | None) -> Reply:
    asked = _asked(call, **where)
    found = await call.platform.accounting.find(asked)
    headers = _named(call, "csv", **where)
    return Reply(stream=_stream(focus.focus_lines(found)), media="text/csv; charset=utf-8", headers=headers)


async def _stream(lots: Iterator[bytes]) -> AsyncIterator[bytes]:
    for lot in lots:
        yield lot


async def _report(call: Call, *, tenant: str | None = None) -> Reply:
    query: MonthQuery = call.query
    text = await report.month_report(
        call.platform.accounting, call.service.clock(), query.month, tenant, call.reader
    )
    return Reply(
        text.encode(), media="text/markdown; charset=utf-8", headers=_named(call, "md", tenant=tenant)
    )


def _named(call: Call, ending: str, **where: str | None) -> dict[str, str]:
    """Return the header that names a file by its tenant or user and its month, such as `usage-red-2031-03.csv`."""
    parts = [
        "usage",
        *(name for name in where.values() if name),
        *([call.query.month] * bool(call.query.month)),
    ]
    name = quote("-".join(parts) + f".{ending}", safe="")
    return {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}


_OWN, _OF, _ALL = "/users/{user}/accounting", "/tenants/{tenant}/accounting", "/accounting"
S, A, P = Relation.SELF, Relation.TENANT_ADMIN, Relation.PLATFORM
J, R, C = JOBS_READ, TENANTS_READ, CLUSTER_READ
_BUDGET = "/tenants/{tenant}/budget"
_CSV, _MD = "text/csv", "text/markdown"

ROUTES = (
    Route("GET", _OWN, own, "Use and cost of a user", S, J, query=LinesQuery, reply=UsageLines),
    Route("GET", f"{_OWN}:csv", own_csv, "Use and cost of a user as CSV", S, J, query=FileQuery, media=_CSV),
    Route("GET", _OF, of_tenant, "Use and cost of a tenant", A, R, query=OfTenantQuery, reply=UsageLines),
    Route(
        "GET",
        f"{_OF}:csv",
        csv_of_tenant,
        "Use and cost of a tenant as CSV",
        A,
        R,
        query=FileQuery,
        media=_CSV,
    ),
    Route(
        "GET",
        f"{_OF}:report",
        report_of_tenant,
        "Report of a tenant's month",
        A,
        R,
        query=MonthQuery,
        media=_MD,
    ),
    Route("GET", _ALL, of_all, "Use and cost of everybody", P, C, query=OfAllQuery, reply=UsageLines),
    Route(
        "GET",
        f"{_ALL}:csv",
        csv_of_all,
        "Use and cost of everybody as CSV",
        P,
        C,
        query=FileQuery,
        media=_CSV,
    ),
    Route(
        "GET",
        f"{_ALL}:report",
        report_of_all,
        "Report of everybody's month",
        P,
        C,
        query=MonthQuery,
        media=_MD,
    ),
    Route("GET", "/prices", prices, "The price list", Relation.ANYBODY, R, reply=Prices),
    Route(
        "PUT",
        "/prices",
        set_prices,
        "Set the price list",
        P,
        CLUSTER_WRITE,
        body=Prices,
        reply=Prices,
        bucket="change",
    ),
    Route("DELETE", "/prices", remove_prices, "Remove the price list", P, CLUSTER_WRITE, bucket="change"),
    Route("GET", "/budgets", budgets, "Budgets of all tenants", P, C, reply=list[BudgetState]),
    Route(
        "GET",
        "/users/{user}/budgets",
        own_budgets,
        "Budgets of a user's tenants",
        S,
        R,
        reply=list[BudgetState],
    ),
    Route("GET", _BUDGET, budget, "The budget of a tenant", Relation.MEMBER, R, reply=BudgetState),
    Route(
        "PUT",
        _BUDGET,
        set_budget,
        "Set the budget of a tenant",
        P,
        TENANTS_WRITE,
        body=BudgetSet,
        reply=BudgetState,
        bucket="change",
    ),
    Route(
        "DELETE", _BUDGET, remove_budget, "Remove the budget of a tenant", P, TENANTS_WRITE, bucket="change"
    ),
)

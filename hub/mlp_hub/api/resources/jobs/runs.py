"""Runs: search, show, compare, write notes and tags, and act on many at once."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from mlp_api.jobs.runs import (
    ListedRun,
    MetricName,
    RunCurves,
    RunDetail,
    RunOutcome,
    RunPage,
    RunsAct,
    RunUpdate,
    Search,
    SortBy,
)
from mlp_hub.api.auth.scopes import JOBS_READ, JOBS_WRITE
from mlp_hub.api.edge.call import Call, Reply
from mlp_hub.api.routes import Relation, Route


class RunQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which runs: all terms of `search` hold; and which of them are in this answer: behind a cursor, or from a row on."""

    search: Search = ""
    sort: SortBy = "-submitted"
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    cursor: Annotated[str, Meta(min_length=1, max_length=50)] | None = None
    start: Annotated[int, Meta(ge=0, le=100_000)] = 0


class RunFileQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which runs are in a file."""

    search: Search = ""
    sort: SortBy = "-submitted"


class CurvesQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """By what, with how many points, of which metric (left out: of all, 20 at most), and which part of the x axis."""

    by: Literal["step", "epoch", "time"] = "step"
    points: Annotated[int, Meta(ge=10, le=5000)] = 500
    metric: MetricName | None = None
    low: float | None = None
    high: float | None = None


class SeveralQuery(CurvesQuery, kw_only=True, forbid_unknown_fields=True):
    """Of which runs: NAME or NAME@RUN, separated by commas, 50 at most."""

    runs: Annotated[str, Meta(max_length=3100)] = ""


class OwnQuery(RunQuery, kw_only=True, forbid_unknown_fields=True):
    """Which runs; with `runs`, NAME or NAME@RUN separated by commas, just these, 50 at most."""

    runs: Annotated[str, Meta(min_length=1, max_length=3100)] | None = None


async def list_(call: Call) -> RunPage:
    """Search a user's runs. Columns for parameters and metrics are those that the first 500 found have."""
    query: OwnQuery = call.query
    if query.runs is not None:
        return await call.platform.runs.named(call.context, call.user, query.runs)
    return await _page(call, user=call.user)


async def of_tenant(call: Call) -> RunPage:
    """Search the runs of a tenant's members, as its admin."""
    return await _page(call, tenant=call.params["tenant"])


async def of_all(call: Call) -> RunPage:
    """Search the runs of everybody, as a platform admin; `user=`, `tenant=` and `state=` in the search say whose and which."""
    return await _page(call)


async def _page(call: Call, *, user: str | None = None, tenant: str | None = None) -> RunPage:
    query: RunQuery = call.query
    return await call.platform.runs.search(
        call.context,
        user=user,
        tenant=tenant,
        search=query.search,
        sort=query.sort,
        limit=query.limit,
        cursor=query.cursor,
        start=query.start,
    )


async def csv(call: Call) -> Reply:
    """Return all runs that a search finds as CSV; a text that could be a formula begins with an apostrophe."""
    return await _file(call, user=call.user)


async def csv_of_tenant(call: Call) -> Reply:
    """Give those of a tenant's members, as its admin."""
    return await _file(call, tenant=call.params["tenant"])


async def csv_of_all(call: Call) -> Reply:
    """Give those of everybody, as a platform admin."""
    return await _file(call)


async def _file(call: Call, *, user: str | None = None, tenant: str | None = None) -> Reply:
    query: RunFileQuery = call.query
    lines = await call.platform.runs.csv(
        call.context, user=user, tenant=tenant, search=query.search, sort=query.sort
    )
    headers = {"Content-Disposition": 'attachment; filename="runs.csv"'}
    return Reply(stream=lines, media="text/csv; charset=utf-8", headers=headers)


async def get(call: Call) -> RunDetail:
    """Show all that is kept of a run: program, arguments, variables, parameters, environment, data, commit."""
    return await call.platform.runs.get(call.context, call.user, call.params["job"])


async def update(call: Call) -> ListedRun:
    """Write a run's note, which is also that of its job, and its tags."""
    return await call.platform.runs.update(
        call.context, call.user, call.params["job"], call.body, actor=call.principal.name
    )


async def act(call: Call) -> list[RunOutcome]:
    """Cancel, delete or tag many runs; each is answered, and one that is refused does not stop the others."""
    return await call.platform.runs.act(call.context, call.user, call.body)


async def curves(call: Call) -> RunCurves:
    """Give a run's curves, thinned out to be compared with those of others."""
    query: CurvesQuery = call.query
    return await call.platform.runs.curves(
        call.context,
        call.user,
        call.params["job"],
        by=query.by,
        points=query.points,
        metric=query.metric,
        low=query.low,
        high=query.high,
    )


async def several(call: Call) -> list[RunCurves]:
    """Give the curves of several runs."""
    query: SeveralQuery = call.query
    return await call.platform.runs.curves_of(
        call.context,
        call.user,
        query.runs,
        by=query.by,
        points=query.points,
        metric=query.metric,
        low=query.low,
        high=query.high,
    )


_RUNS = "/users/{user}/runs"
_RUN = "/users/{user}/runs/{job}"
_OF_TENANT = "/tenants/{tenant}/runs"

ROUTES = (
    Route("GET", _RUNS, list_, "Search runs", Relation.SELF, JOBS_READ, query=OwnQuery, reply=RunPage),
    Route(
        "GET",
        f"{_RUNS}:csv",
        csv,
        "Runs as CSV",
        Relation.SELF,
        JOBS_READ,
        query=RunFileQuery,
        reply=str,
        media="text/csv",
    ),
    Route(
        "PUT",
        f"{_RUNS}:act",
        act,
        "Do one thing to many runs",
        Relation.SELF,
        JOBS_WRITE,
        body=RunsAct,
        reply=list[RunOutcome],
    ),
    Route(
        "GET",
        f"{_RUNS}:curves",
        several,
        "Curves of several runs",
        Relation.SELF,
        JOBS_READ,
        query=SeveralQuery,
        reply=list[RunCurves],
    ),
    Route("GET", _RUN, get, "Show what a run was", Relation.OWNED, JOBS_READ, reply=RunDetail),
    Route(
        "PUT",
        _RUN,
        update,
        "Write a run's note and tags",
        Relation.SELF,
        JOBS_WRITE,
        body=RunUpdate,
        reply=ListedRun,
    ),
    Route(
        "GET",
        f"{_RUN}/curves",
        curves,
        "Curves of a run",
        Relation.OWNED,
        JOBS_READ,
        query=CurvesQuery,
        reply=RunCurves,
    ),
    Route(
        "GET",
        "/runs",
        of_all,
        "Search the runs of everybody",
        Relation.PLATFORM,
        JOBS_READ,
        query=RunQuery,
        reply=RunPage,
    ),
    Route(
        "GET",
        "/runs:csv",
        csv_of_all,
        "Runs of everybody as CSV",
        Relation.PLATFORM,
        JOBS_READ,
        query=RunFileQuery,
        reply=str,
        media="text/csv",
    ),
    Route(
        "GET",
        _OF_TENANT,
        of_tenant,
        "Search the runs of a tenant",
        Relation.TENANT_ADMIN,
        JOBS_READ,
        query=RunQuery,
        reply=RunPage,
    ),
    Route(
        "GET",
        f"{_OF_TENANT}:csv",
        csv_of_tenant,
        "Runs of a tenant as CSV",
        Relation.TENANT_ADMIN,
        JOBS_READ,
        query=RunFileQuery,
        reply=str,
        media="text/csv",
    ),
)

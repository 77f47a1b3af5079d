"""Each route's relation and scope follow from its path; what does not is named here with its reason."""

from __future__ import annotations

from operator import attrgetter

import pytest

from mlp_hub.api.auth import scopes
from mlp_hub.api.auth.owned import kind_in
from mlp_hub.api.routes import Relation, Route
from mlp_hub.api.table import all_routes

ROUTES = all_routes()


PUBLIC = {
    "GET /health": "who starts the service asks before there is any token",
    "GET /ready": "who sends requests on asks it, and has no token",
    "GET /openapi.json": "describes the API, holds nobody's data",
    "POST /users": "a sign-up comes from who has no account yet",
}
ANYBODY = {
    "GET /auth": "the caller's own name",
    "GET /session": "the caller's own session",
    "GET /runtimes": "the same for all",
    "GET /offer": "made for the caller, in the caller's tenants",
    "GET /announcements": "told to everybody, and to members of the caller's tenants",
    "GET /tenants": "lists those that the caller is in",
    "GET /metrics": "a scraper's: the scope alone decides, and only administrators hold it",
    "GET /prices": "the same for all",
    "PUT /users/{user}:approve": "the admin of the tenant applied for may; the handler knows which that is",
    "DELETE /users/{user}": "as for approving",
}
OF_ANOTHERS_JOB = {
    "PUT /users/{user}/jobs/{job}:update": "an admin of the tenant orders its queue",
    "PUT /users/{user}/jobs/{job}:cancel": "an admin of the tenant can free what a member's job holds",
    "PUT /users/{user}/jobs/{job}:suspend": "same",
    "PUT /users/{user}/jobs/{job}:keep": "an admin of the tenant can keep what its policy would end",
    "PUT /users/{user}/sweeps/{sweep}:cancel": "same, of all trials of a sweep",
}
"""What who is not its owner may do to a job, besides looking."""
OF_ANOTHERS_APP = {"GET /users/{user}/apps/{app}:shared": "who may open an app finds it in the panel"}
FOR_THE_PLATFORM = {
    "GET /users/{user}:spawn": "asked by the spawner",
    "GET /users/{user}:stopped": "same",
    "PUT /users/{user}:token_made": "said by the hub",
    "PUT /users/{user}:token_ended": "same",
    "PUT /users/{user}:changing": "same",
    "GET /users/{user}:token_uses": "asked by the hub",
    "GET /users/{user}:announced": "same",
    "PUT /users/{user}:standing": "said by the hub",
    "PUT /users/{user}:password": "the owner changes it on a page that asks for the present one",
    "PUT /users/{user}:admin": "nobody makes themselves one",
    "POST /users/{user}/token": "asked by the operator's command",
    "PUT /users/{user}/job_metrics/{job}:begin": "asked by the platform's own parts",
    "PUT /users/{user}/job_metrics/{job}:finish": "same",
    "PUT /users/{user}/job_metrics/{job}:delete": "same",
}
"""Below a user's path, and yet not for the user."""
TENANT_ADMINS_WRITE = {
    "PUT /tenants/{tenant}/caps",
    "PUT /tenants/{tenant}/idle_policy",
    "PUT /tenants/{tenant}/idle_job_policy",
    "POST /tenants/{tenant}/quota_requests",
    "DELETE /tenants/{tenant}/quota_requests/{request}",
    "PUT /tenants/{tenant}/joins/{user}:approve",
    "PUT /tenants/{tenant}/joins/{user}:decline",
    "PUT /tenants/{tenant}/members/{user}",
    "DELETE /tenants/{tenant}/members/{user}",
    "POST /tenants/{tenant}/announcements",
    "DELETE /tenants/{tenant}/announcements/{announcement}",
    "POST /tenants/{tenant}/silences",
    "DELETE /tenants/{tenant}/silences/{silence}",
    "PUT /tenants/{tenant}/runtimes/{runtime}",
    "DELETE /tenants/{tenant}/runtimes/{runtime}",
    "PUT /tenants/{tenant}/secrets/{secret}",
    "DELETE /tenants/{tenant}/secrets/{secret}",
    "POST /tenants/{tenant}/services",
    "PUT /tenants/{tenant}/services/{service}:rotate",
    "DELETE /tenants/{tenant}/services/{service}",
}
MEMBERS_WRITE = {
    "POST /tenants/{tenant}/environments",
    "DELETE /tenants/{tenant}/environments/{environment}",
}
"""What a tenant's members make for each other; of others' the service lets its admins alone delete any."""
BY_JOBS = {
    "GET /users/{user}/jobs/{job}",
    "PUT /users/{user}/jobs/{job}:heartbeat",
    "POST /users/{user}/job_metrics/{job}",
}
"""What a job's own token may do."""
OTHER_SCOPES = {
    "GET /users:working": (scopes.LEDGER_WRITE, "asked by the hub, with the token that it has"),
    "GET /users/{user}:token_uses": (scopes.LEDGER_WRITE, "same"),
    "GET /users/{user}:announced": (scopes.LEDGER_WRITE, "same"),
    "PUT /login:standing": (scopes.LEDGER_WRITE, "said by it"),
    "GET /users/{user}/token": (scopes.USERS_WRITE, "makes a token"),
    "POST /users/{user}/token": (scopes.USERS_WRITE, "same"),
    "PUT /users/{user}:password": (scopes.USERS_WRITE, "changes an account, not the ledger"),
    "PUT /users/{user}:admin": (scopes.USERS_WRITE, "same"),
    "GET /users/{user}/secrets": (scopes.DATA_READ, "secrets open the sources of datasets"),
    "PUT /users/{user}/secrets/{secret}": (scopes.DATA_WRITE, "same"),
    "DELETE /users/{user}/secrets/{secret}": (scopes.DATA_WRITE, "same"),
    "GET /users/{user}/notifications": (scopes.NOTICES_READ, "what is told of jobs, apart from accounts"),
    "PUT /users/{user}/notifications": (scopes.NOTICES_WRITE, "same"),
    "POST /users/{user}/notifications:test": (scopes.NOTICES_WRITE, "same"),
    "GET /users/{user}/notices": (scopes.NOTICES_READ, "same"),
    "GET /users/{user}/teams": (scopes.TENANTS_READ, "shows tenants"),
    "POST /users/{user}/teams": (scopes.TENANTS_WRITE, "asks a tenant for a place"),
    "DELETE /users/{user}/teams/{team}": (scopes.TENANTS_WRITE, "same"),
    "GET /users/{user}/quota": (scopes.TENANTS_READ, "shows tenants"),
    "PUT /stored:take": (scopes.STORED_WRITE, "asked by what holds files, with a token for that alone"),
    "PUT /stored:give": (scopes.STORED_WRITE, "same"),
    "PUT /stored:open": (scopes.STORED_WRITE, "same"),
    "PUT /stored:begun": (scopes.STORED_WRITE, "same"),
    "PUT /gateway:admit": (scopes.GATEWAY, "asked by the gateway to apps, with a token for that alone"),
    "PUT /gateway:enter": (scopes.GATEWAY, "same"),
    "PUT /gateway:used": (scopes.GATEWAY, "same"),
    "POST /users/{user}/sweeps:preview": (
        scopes.JOBS_READ,
        "it looks, though what it looks at is too much for an address",
    ),
    "POST /simulate": (scopes.CLUSTER_READ, "runs beside the hub and changes nothing"),
    "POST /announcements": (scopes.CLUSTER_WRITE, "tells everybody"),
    "DELETE /announcements/{announcement}": (scopes.CLUSTER_WRITE, "same"),
    "POST /silences": (scopes.CLUSTER_WRITE, "silences what concerns everybody"),
    "DELETE /silences/{silence}": (scopes.CLUSTER_WRITE, "same"),
    "PUT /nodes/{node}:drain": (scopes.CLUSTER_WRITE, "changes what the cluster takes"),
    "PUT /nodes/{node}:return": (scopes.CLUSTER_WRITE, "same"),
    "GET /announcements": (scopes.NOTICES_READ, "what is told, to notebooks too"),
    "GET /metrics": (scopes.METRICS_READ, "JupyterHub's own, so that one token scrapes both"),
    "GET /offer": (scopes.JOBS_READ, "shows what a job would get"),
    "GET /users/{user}/accounting": (scopes.JOBS_READ, "shows what one's work used"),
    "GET /users/{user}/accounting:csv": (scopes.JOBS_READ, "same"),
    "GET /users/{user}/idle_servers": (scopes.JOBS_READ, "shown in notebooks, whose tokens hold that"),
    "PUT /users/{user}/idle_servers:report": (
        scopes.JOBS_WRITE,
        "said by notebook servers, whose tokens hold that",
    ),
    "PUT /users/{user}/idle_servers:keep": (scopes.JOBS_WRITE, "same"),
    "GET /prices": (scopes.TENANTS_READ, "belongs to quotas"),
    "GET /users/{user}/budgets": (scopes.TENANTS_READ, "same"),
    "PUT /prices": (scopes.CLUSTER_WRITE, "changes what everybody is shown"),
    "DELETE /prices": (scopes.CLUSTER_WRITE, "same"),
}
MINE = {
    "GET /users/{user}/preferences",
    "PATCH /users/{user}/preferences",
    "DELETE /users/{user}/token",
}  # whatever one may do: how one is spoken to, and to give up what one holds
NO_SCOPE = {"GET /auth", "GET /session", "GET /runtimes", *MINE, *PUBLIC}


def allowed(route: Route) -> set[Relation]:
    """Say which relations a route may ask for, by its path alone."""
    name = route.title
    if name in PUBLIC:
        return {Relation.PUBLIC}
    if name in ANYBODY:
        return {Relation.ANYBODY}
    if name in FOR_THE_PLATFORM:
        return {Relation.PLATFORM}
    looks = route.method == "GET"
    if {"job", "sweep"} & set(route.params):
        return {Relation.OWNED} if looks or name in OF_ANOTHERS_JOB else {Relation.SELF}
    if name in OF_ANOTHERS_APP:
        return {Relation.VISITOR}
    if {"model", "dataset", "app"} & set(route.params):
        return {Relation.OWNED} if looks else {Relation.SELF}
    if "tenant" in route.params:
        if looks:
            return {Relation.MEMBER, Relation.TENANT_ADMIN}
        if name in MEMBERS_WRITE:
            return {Relation.MEMBER}
        return {Relation.TENANT_ADMIN} if name in TENANT_ADMINS_WRITE else {Relation.PLATFORM}
    return {Relation.SELF} if "user" in route.params else {Relation.PLATFORM}


def expected_scope(route: Route) -> str | None:
    """Say which scope a route needs, by its path and method."""
    name = route.title
    if name in NO_SCOPE:
        return None
    if name in OTHER_SCOPES:
        return OTHER_SCOPES[name][0]
    if name in FOR_THE_PLATFORM or route.path.startswith("/resource_request"):
        return scopes.LEDGER_WRITE
    looks = route.method == "GET"
    first = route.path.strip("/").replace(":", "/").split("/")[0]
    if {"job", "sweep", "environment"} & set(route.params) or route.path.partition(":")[0].endswith(
        ("/jobs", "/runs", "/sweeps", "/environments")
    ):
        return scopes.JOBS_READ if looks else scopes.JOBS_WRITE
    if "model" in route.params or route.path.endswith("/models"):
        return scopes.MODELS_READ if looks else scopes.MODELS_WRITE
    if "app" in route.params or route.path.partition(":")[0].endswith("{user}/apps"):
        return scopes.APPS_READ if looks else scopes.APPS_WRITE
    if "dataset" in route.params or route.path.endswith("/datasets"):
        return scopes.DATA_READ if looks else scopes.DATA_WRITE
    if first == "tenants":
        return scopes.TENANTS_READ if looks else scopes.TENANTS_WRITE
    if first == "users":
        return scopes.USERS_READ if looks else scopes.USERS_WRITE
    assert looks, f"{name}: say here which scope it needs"
    return scopes.CLUSTER_READ


@pytest.mark.parametrize("route", ROUTES, ids=attrgetter("title"))
def test_a_route_asks_for_the_relation_that_its_path_means(route: Route) -> None:
    assert route.relation in allowed(route), (
        "its path means one of these; a route that differs is named in a table of this file"
    )


@pytest.mark.parametrize("route", ROUTES, ids=attrgetter("title"))
def test_a_route_requires_the_scope_of_the_objects_it_reads_or_writes(route: Route) -> None:
    expected = expected_scope(route)
    assert route.scope == expected, f"its path means {expected}; another scope is a row of OTHER_SCOPES"


def test_every_exception_that_is_named_is_a_route() -> None:
    named = {
        *PUBLIC, *ANYBODY, *OF_ANOTHERS_JOB, *OF_ANOTHERS_APP, *FOR_THE_PLATFORM, *TENANT_ADMINS_WRITE, *BY_JOBS, *OTHER_SCOPES,
        *NO_SCOPE,
    }  # fmt: skip
    assert named <= {route.title for route in ROUTES}


def test_a_relation_finds_what_it_is_about_in_the_path() -> None:
    needed = {
        Relation.SELF: {"user"},
        Relation.OWNED: {"user"},
        Relation.VISITOR: {"user", "app"},
        Relation.MEMBER: {"tenant"},
        Relation.TENANT_ADMIN: {"tenant"},
    }
    for route in ROUTES:
        assert needed.get(route.relation, set()) <= set(route.params), route.title
        assert route.relation is not Relation.OWNED or kind_in(dict.fromkeys(route.params, "")), route.title


def test_a_jobs_own_token_reports_and_reads_that_job() -> None:
    assert {route.title for route in ROUTES if route.job_token} == BY_JOBS

"""Every route by every kind of caller: who gets in, and that the others learn nothing."""

from __future__ import annotations

from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from api_rig import ApiRig
from mlp_hub.api import scopes
from mlp_hub.api.routes import Relation, Route
from mlp_hub.api.table import all_routes

ROUTES = all_routes()
IDS = [f"{'WS' if r.socket else r.method} {r.path}" for r in ROUTES]
EMPTY = {"user": "ann", "job": "nope", "tenant": "red"}


def path_of(route: Route, **values: str) -> str:
    """Fill in a path; its job does not exist, so that nothing is changed by who gets in."""
    path = route.path
    empty = {**EMPTY, "user": "ghost"} if "/members/" in path else EMPTY
    for name, value in {**empty, **values}.items():
        path = path.replace("{" + name + "}", value)
    return path


def status_of(rig: ApiRig, route: Route, token: str | None, **values: str) -> tuple[int, str]:
    """Try a route with a body that is never valid; say (status, reason)."""
    path = path_of(route, **values)
    if route.socket:
        try:
            with rig.socket(path, token=token):
                return 101, ""
        except InvalidStatus as err:
            body = err.response.body or b""
            return err.response.status_code, "NotFound" if b'"NotFound"' in body else body.decode()
    body = {"\0": 1} if route.body is not None else None
    answer = rig.ask(route.method, path, body, token=token)
    return answer.status, answer.json.get("reason", "") if answer.status == 403 else ""


def got_in(route: Route, status: int, reason: str) -> bool:
    """Whether the handler or the validation after the checks was reached."""
    if route.body is not None and status == 403:
        return reason == "Invalid"
    return status in (101, 200, 201) or (status == 403 and reason in ("Conflict", "WrongState"))


@pytest.mark.parametrize("route", ROUTES, ids=IDS)
def test_without_a_token_only_the_public_routes_answer(rig: ApiRig, route: Route) -> None:
    status, _ = status_of(rig, route, None)
    assert (status == 401) is (route.relation is not Relation.PUBLIC)
    assert status_of(rig, route, "not-a-token")[0] == status
    if route.relation is Relation.PUBLIC:
        assert route.path in ("/health", "/openapi.json", "/users")


def test_the_public_routes_are_these_three() -> None:
    public = {(r.method, r.path) for r in ROUTES if r.relation is Relation.PUBLIC}
    assert public == {("GET", "/health"), ("GET", "/openapi.json"), ("POST", "/users")}


CHANGES_ACCOUNTS = {
    "PUT /users/{user}",
    "PUT /users/{user}:approve",
    "DELETE /users/{user}",
    "GET /users/{user}/token",
}


@pytest.mark.parametrize("route", ROUTES, ids=IDS)
def test_a_token_without_the_scope_is_refused_before_anything_is_looked_up(rig: ApiRig, route: Route) -> None:
    if route.scope is None:
        return
    others = tuple(s for s in scopes.SCOPES if s != route.scope)
    token = rig.hub.user("ann", f"without-{route.scope}", held=(scopes.ACCESS, *others))
    status, reason = status_of(rig, route, token)
    assert status == 403
    assert reason == "Forbidden" or route.scope in reason


@pytest.mark.parametrize("route", ROUTES, ids=IDS)
def test_a_token_that_was_made_for_another_service_is_refused(rig: ApiRig, route: Route) -> None:
    if route.relation is Relation.PUBLIC:
        return
    token = rig.hub.user("ann", "others-token", held=("access:services!service=other", *scopes.ADMIN_SCOPES))
    status, reason = status_of(rig, route, token)
    assert status == 403
    assert "Forbidden" in reason


# who gets in, by relation: owner, somebody else, admin of the owner's tenant, admin of another tenant
ALLOWED = {
    Relation.SELF: {"ann"},
    Relation.JOB: {"ann", "rita"},
    Relation.MEMBER: {"ann", "rita"},
    Relation.TENANT_ADMIN: {"rita"},
    Relation.PLATFORM: set(),
}


@pytest.mark.parametrize(
    "route", [r for r in ROUTES if r.relation in ALLOWED], ids=lambda r: f"{r.method} {r.path}"
)
@pytest.mark.parametrize("who", ["ann", "bob", "rita", "blue"])
def test_only_who_stands_so_to_the_object_gets_in(rig: ApiRig, route: Route, who: str) -> None:
    if f"{route.method} {route.path}" in CHANGES_ACCOUNTS and who == "ann":
        return  # tried where accounts are tested
    token = f"{who}-token"
    allowed = who in ALLOWED[route.relation]
    # an existing job is only looked at, all else is tried on one that is not there
    job = "digits" if route.method == "GET" else "nope"
    if route.path.endswith("/logs:stream") or (route.relation is Relation.JOB and route.socket):
        job = "digits"
    status, reason = status_of(rig, route, token, job=job)
    if "{job}" in route.path and job == "nope" and allowed and route.body is None:
        assert (status, reason) == (403, "NotFound")
    elif allowed:
        assert got_in(route, status, reason) or reason == "NotFound", (status, reason)
    else:
        assert status == 403
        expected = {"NotFound"} if route.params and route.scope in scopes.USER_SCOPES else {"Forbidden"}
        if route.relation is Relation.TENANT_ADMIN and who == "ann":
            expected = {"Forbidden"}  # a member may know that the tenant is there
        assert any(word in reason for word in expected), reason


@pytest.mark.parametrize(
    "route", [r for r in ROUTES if r.relation in ALLOWED], ids=lambda r: f"{r.method} {r.path}"
)
def test_a_platform_admin_gets_in_everywhere(rig: ApiRig, route: Route) -> None:
    if f"{route.method} {route.path}" in CHANGES_ACCOUNTS or (
        route.path.startswith("/tenants/{tenant}") and route.method == "DELETE"
    ):
        return
    status, reason = status_of(rig, route, rig.root_user, job="digits" if route.method == "GET" else "nope")
    assert got_in(route, status, reason) or reason in ("NotFound", "Invalid"), (status, reason)


@pytest.mark.parametrize("route", ROUTES, ids=IDS)
def test_a_notebooks_token_reaches_its_owners_jobs_only_even_an_admins(rig: ApiRig, route: Route) -> None:
    held = scopes.SERVER_SCOPES
    token = rig.hub.user("admin", "admins-notebook", held=held)
    if route.relation in (Relation.PUBLIC, Relation.ANYBODY):
        return
    assert status_of(rig, route, token, job="digits")[0] == 403


@pytest.mark.parametrize("route", ROUTES, ids=IDS)
def test_a_jobs_token_reports_for_its_own_job_and_does_nothing_else(rig: ApiRig, route: Route) -> None:
    uid = rig.ask("GET", "/users/ann/jobs/digits", token=rig.ann).json["uid"]
    token = rig.job_token(uid)
    if route.relation is Relation.PUBLIC:
        return
    own = status_of(rig, route, token, job="digits")
    if route.job_token:
        assert got_in(route, *own)
        for values in ({"job": "other"}, {"user": "bob", "job": "digits"}):
            assert status_of(rig, route, token, **values) == (403, "NotFound")
    else:
        assert own[0] == 403
        assert "Forbidden" in own[1]
    # the hub is never asked about it
    assert token not in str(rig.hub.requests)


@pytest.mark.parametrize("route", ROUTES, ids=IDS)
def test_the_spawners_token_reaches_the_ledger_and_reads_tenants(rig: ApiRig, route: Route) -> None:
    if route.relation in (Relation.PUBLIC, Relation.ANYBODY):
        return
    status, reason = status_of(rig, route, rig.spawner)
    if route.scope in scopes.SPAWNER_SCOPES:
        assert got_in(route, status, reason) or reason == "NotFound"
    else:
        assert (status, "Forbidden" in reason) == (403, True)


FOREIGN: list[tuple[str, str, Any]] = [
    ("GET", "/users/ann/jobs/{}", None),
    ("GET", "/users/ann/jobs/{}/why", None),
    ("GET", "/users/ann/jobs/{}/logs", None),
    ("GET", "/users/ann/jobs/{}/events", None),
    ("PUT", "/users/ann/jobs/{}:cancel", None),
    ("PUT", "/users/ann/jobs/{}:resume", {}),
    ("DELETE", "/users/ann/jobs/{}", None),
    ("POST", "/users/ann/job_metrics/{}", {"source": "0.0.a", "points": []}),
]


@pytest.mark.parametrize(("method", "path", "body"), FOREIGN)
@pytest.mark.parametrize("who", ["bob-token", "blue-token", "notebook-of-bob"])
def test_anothers_job_answers_byte_for_byte_as_one_that_is_not_there(
    rig: ApiRig, method: str, path: str, body: Any, who: str
) -> None:
    rig.hub.user("bob", "notebook-of-bob", held=scopes.SERVER_SCOPES)
    there = rig.ask(method, path.format("digits"), body, token=who)
    missing = rig.ask(method, path.format("digitz"), body, token=who)
    assert there.status == missing.status == 403
    assert there.body == missing.body.replace(b"digitz", b"digits")
    # as their own that is not there
    own = rig.ask(method, path.replace("ann", "bob").format("digits"), body, token="bob-token")
    assert own.body == there.body
    skip = {"date"}
    assert {k: v for k, v in there.headers.items() if k not in skip} == {
        k: v for k, v in missing.headers.items() if k not in skip
    }


@pytest.mark.parametrize(
    "path", ["/tenants/{}", "/tenants/{}/usage", "/tenants/{}/members", "/tenants/{}/queue"]
)
def test_anothers_tenant_answers_as_one_that_is_not_there(rig: ApiRig, path: str) -> None:
    there = rig.ask("GET", path.format("red"), token=rig.bob)
    missing = rig.ask("GET", path.format("ree"), token=rig.bob)
    assert there.status == 403
    assert there.body == missing.body.replace(b"ree", b"red")


def test_a_user_cannot_be_told_from_one_that_is_not_there(rig: ApiRig) -> None:
    for path in ("/users/{}", "/users/{}/jobs", "/users/{}/quota", "/users/{}/token"):
        there = rig.ask("GET", path.format("ann"), token=rig.bob)
        missing = rig.ask("GET", path.format("anx"), token=rig.bob)
        assert there.status == 403
        assert there.body == missing.body.replace(b"anx", b"ann")


def test_a_tenants_admin_gives_themselves_nothing_and_takes_nobody_from_others(rig: ApiRig) -> None:
    quota = rig.ask("PUT", "/tenants/red", {"cpu": 1000}, token=rig.rita)
    assert (quota.status, quota.json["reason"]) == (403, "NotFound")
    assert rig.ask("POST", "/tenants", {"name": "own"}, token=rig.rita).json["reason"] == "Forbidden"
    assert rig.ask("DELETE", "/tenants/red", token=rig.rita).status == 403
    assert (
        rig.ask("PUT", "/tenants/blue/members/rita", {"role": "admin"}, token=rig.rita).json["reason"]
        == "NotFound"
    )
    moved = rig.ask("PUT", "/tenants/red/members/bob", {"role": "member"}, token=rig.rita)
    assert (moved.status, moved.json["reason"]) == (403, "Forbidden")
    # somebody without a tenant may be taken in, and stays where they were besides: nobody asked them
    rig.hub.user("new", "new-token")
    assert rig.ask("PUT", "/tenants/red/members/new", {"role": "member"}, token=rig.rita).status == 200
    assert rig.ask("GET", "/tenants/default/members/new", token=rig.root_user).json["role"] == "member"
    for who in (rig.ann, rig.notebook):
        assert (
            rig.ask("PUT", "/tenants/red/members/ann", {"role": "admin"}, token=who).json["reason"]
            == "Forbidden"
        )


def test_forged_headers_make_nobody_else_of_a_caller(rig: ApiRig) -> None:
    forged = {
        "X-Forwarded-User": "admin",
        "X-Remote-User": "admin",
        "X-Tenant-ID": "red",
        "X-Forwarded-For": "127.0.0.1",
        "X-Forwarded-Host": "127.0.0.1",
        "X-Original-URL": "/services/mlp/api/v1/health",
        "X-HTTP-Method-Override": "DELETE",
    }
    assert rig.ask("GET", "/auth", token=rig.bob, headers=forged).json == "bob"
    assert rig.ask("GET", "/auth", headers=forged).status == 401
    assert rig.ask("GET", "/users/ann/jobs/digits", token=rig.bob, headers=forged).status == 403
    assert rig.ask("GET", "/tenants/red", token=rig.bob, headers=forged).status == 403

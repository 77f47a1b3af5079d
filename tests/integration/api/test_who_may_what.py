"""The page "Who may what": each route by each kind of caller, asked for."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from mlp_hub.api.access import CALLERS, DECIDES, Caller
from mlp_hub.api.routes import Relation, Route
from mlp_hub.api.table import all_routes
from support.rigs.api_rig import ApiRig, a_model, an_announcement

_numbers = itertools.count()
BY_NAME = {caller.name: caller for caller in CALLERS}
SIGN_UPS = {"PUT /users/{user}:approve", "DELETE /users/{user}"}
"""Decided on where somebody waits for it; tests of accounts do."""
MADE = {"POST /users/{user}/token": {"note": "x"}, "PUT /users/{user}:standing": {}}
MADE["PUT /users/{user}:token_ended"] = {"actor": "ann", "note": "x", "token": "a1"}
MADE["PUT /users/{user}:changing"] = {"actor": "ann", "action": "user.logout"}
MADE["PUT /users/{user}:token_made"] = {"actor": "ann", "note": "x", "scopes": "", "expires": "never"}
"""Bodies for handlers that look at who asks only once the body is right."""
UNDERSTOOD = {"PUT /stored:open": {"uid": "0" * 26, "path": "x"}}
"""Bodies of who may not, where the handler alone can refuse."""


@dataclass(frozen=True)
class Asker:
    """A caller of a kind: with this token, about what this user has."""

    caller: Caller
    token: str | None
    user: str
    owner: str  # token by which objects of the user are made

    def __str__(self) -> str:
        return self.caller.name


@pytest.fixture(scope="module")
def askers(rig: ApiRig) -> dict[str, Asker]:
    """Give one of each kind; ann, a service account and gina, whom a group brought, are in red with a job digits."""
    made = rig.ask("POST", "/tenants/red/services", {"name": "mx"}, token=rig.rita)
    assert made.status == 201, made.body
    service, token = made.json["user"], made.json["token"]
    rig.hub.user("gina", "gina-token")
    rig.hub.tokens["gina-token"]["groups"] = ["red"]
    for user, own in ((service, token), ("gina", "gina-token")):
        rig.job(user, "digits", own, cpu=0.1)
        rig.dataset(user, "pets", own)
        stored_by(rig, user, "net", own)
    job = rig.job_token(rig.ask("GET", "/users/ann/jobs/digits", token=rig.ann).json["uid"])
    ann = {
        "nobody": None,
        "user": rig.ann,
        "other": rig.blue,
        "tenant admin": rig.rita,
        "notebook": rig.notebook,
        "job": job,
        "spawner": rig.spawner,
        "data": rig.data,
        "gateway": rig.gateway,
        "platform admin": rig.root_user,
    }
    found = {name: Asker(BY_NAME[name], value, "ann", rig.ann) for name, value in ann.items()}
    found["service account"] = Asker(BY_NAME["service account"], token, service, token)
    found["managed user"] = Asker(BY_NAME["user"], "gina-token", "gina", "gina-token")
    assert {asker.caller.name for asker in found.values()} == set(BY_NAME)
    return found


def window(name: str) -> dict[str, Any]:
    start, end = (datetime.fromtimestamp(time.time() + s, UTC).isoformat() for s in (0, 3600))
    return {"name": name, "start": start, "end": end, "amount": {"cpu": 0.001}}


def stored_by(rig: ApiRig, user: str, name: str, token: str) -> None:
    """Register a model of a file that the user's job wrote."""
    written = rig.rig.workspace(user, "digits") / "ckpt"
    written.mkdir(parents=True, exist_ok=True)
    (written / "last.pt").write_text("weights")
    a_model(rig, name, user=user, token=token)


def objects(rig: ApiRig, route: Route, asker: Asker) -> dict[str, str]:
    """Name objects that are there for the route: such as nobody else needs where it may change them."""
    there = {"user": asker.user, "job": "digits", "tenant": "red", "token": f"a-{asker.owner}"}
    there |= {
        "booking": "night",
        "request": "asked",
        "team": "open",
        "runtime": "mine",
        "service": "ci",
        "dataset": "pets",
        "model": "net",
        "app": "site",
        "sweep": "search",
        "key": "mine",
        "secret": "mine",
        "node": "n1",
        "announcement": "1",
        "silence": "1",
        "environment": "tools",
    }
    if "app" in route.params:
        rig.site(asker.user, asker.owner)
    if "sweep" in route.params:
        rig.search(asker.user, asker.owner)
    if route.method == "GET" or route.body is not None or not asker.caller.may(route):
        return there
    name = f"new{next(_numbers)}"
    if "job" in route.params and asker.caller.name != "job":
        rig.job(asker.user, name, asker.owner, cpu=0.1, env={"SIM_DURATION": "600"})
        return {**there, "job": name}
    if "dataset" in route.params:
        rig.dataset(asker.user, name, asker.owner)
        return {**there, "dataset": name}
    if "model" in route.params:
        stored_by(rig, asker.user, name, asker.owner)
        return {**there, "model": name}
    if "app" in route.params:
        rig.app(asker.user, name, asker.owner)
        if "key" in route.params:
            rig.key(asker.user, name, there["key"], asker.owner)
        return {**there, "app": name}
    if "sweep" in route.params:
        rig.sweep(asker.user, name, asker.owner)
        return {**there, "sweep": name}
    if "secret" in route.params:
        whose = f"/tenants/{there['tenant']}" if "tenant" in route.params else f"/users/{there['user']}"
        kept = rig.ask("PUT", f"{whose}/secrets/mine", {"keys": {"a": "b"}}, token=rig.root_user)
        assert kept.status == 200, kept.body
        return there
    if "announcement" in route.params:
        whose = f"/tenants/{there['tenant']}" if "tenant" in route.params else ""
        told = rig.ask("POST", f"{whose}/announcements", an_announcement(), token=rig.root_user)
        assert told.status == 201, told.body
        return {**there, "announcement": str(told.json["id"])}
    if "silence" in route.params:
        return {**there, "silence": rig.silence(there["tenant"], rig.rita)}
    if "team" in route.params:
        rig.asks(name, asker.user, asker.owner)
        return {**there, "team": name}
    if "environment" in route.params:
        rig.environment(name, asker.user)
        return {**there, "environment": name}
    if "tenant" not in route.params:
        return there
    rig.hub.user(name, f"{name}-token")
    if "joins" in route.path:
        rig.asks(name, name, f"{name}-token")
        return {**there, "tenant": name, "user": name}
    rig.tenant(name, "rita", members=("ann", name))
    if "request" in route.params:
        return {**there, "tenant": name, "user": name, "request": rig.asks_for_more(name)}
    made = {"booking": ("POST", "bookings", window("night")), "service": ("POST", "services", {"name": name})}
    made["runtime"] = ("PUT", "runtimes/mine", {"title": "Mine"})
    for kind, (method, path, body) in made.items():
        if kind in route.params:
            assert rig.ask(method, f"/tenants/{name}/{path}", body, token=rig.root_user).status in (200, 201)
    return {**there, "tenant": name, "user": name, "service": name}


def opens(rig: ApiRig, path: str, token: str | None) -> bool:
    """Whether a WebSocket opens; nothing but a refusal keeps it from that."""
    status = 101
    try:
        with rig.socket(path, token=token):
            pass
    except InvalidStatus as err:
        status = err.response.status_code
    assert status in (101, 401, 403)
    return status == 101


def gets_through(rig: ApiRig, route: Route, asker: Asker) -> bool:
    """Ask, with a body that is never valid unless the handler must see it; whether the handler was come to."""
    path = route.path
    if path == "/prices":
        rig.price_list()
    for name, value in objects(rig, route, asker).items():
        path = path.replace("{" + name + "}", value)
    if path.endswith("/budget"):
        rig.budget(path.split("/")[2])
    if route.socket:
        return opens(rig, path, asker.token)
    body = None if route.body is None else MADE.get(route.title, {"\0": 1})
    if not asker.caller.may(route):
        body = UNDERSTOOD.get(route.title, body)
    answer = rig.ask(route.method, path, body, token=asker.token)
    if answer.status == 401:
        assert asker.token is None, asker.caller.name
        return False
    if answer.status == 403:
        return answer.json["reason"] not in ("Forbidden", "NotFound")
    assert answer.status == route.status, (asker.caller.name, answer.body)
    return True


KINDS = [*BY_NAME, "managed user"]


@pytest.mark.parametrize("route", list(all_routes()), ids=attrgetter("title"))
def test_exactly_the_permitted_callers_get_through_each_route(
    rig: ApiRig, askers: dict[str, Asker], route: Route
) -> None:
    """Of each route all kinds in one test: two thousand of a few milliseconds would take longer to list than to run."""
    through, may = set(), set()
    for kind in KINDS:
        asker = askers[kind]
        if route.title in SIGN_UPS and asker.caller.may(route):
            continue
        may |= {kind} if asker.caller.may(route) else set()
        with rig.people_as_now():
            through |= {kind} if gets_through(rig, route, asker) else set()
    assert through == may


def test_each_exception_is_a_route_and_names_kinds_that_there_are() -> None:
    assert set(DECIDES) <= {route.title for route in all_routes()}
    assert {name for names in DECIDES.values() for name in names} <= set(BY_NAME)


def test_anonymous_callers_get_through_to_public_routes_only() -> None:
    through = {route.relation for route in all_routes() if BY_NAME["nobody"].may(route)}
    assert through == {Relation.PUBLIC}

"""A kind of object that users own is one row: who finds its routes, who stands how to it, and how it is refused, follow."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from tornado.httputil import HTTPHeaders, HTTPServerRequest, RequestStartLine

from mlp_hub.api.auth.gatekeeper import Admitted, Gatekeeper
from mlp_hub.api.auth.owned import KINDS, Owned
from mlp_hub.api.auth.principal import CallerKind, Principal
from mlp_hub.api.auth.scopes import ACCESS, CLUSTER_READ, JOBS_READ
from mlp_hub.api.edge.limits import Limiter
from mlp_hub.api.routes import Relation, Route, RouteTable
from mlp_hub.domain.errors import Reason, Refused


@dataclass
class Place:
    tenant: str
    role: str


PLACES = {
    "rita": [Place("red", "admin")],
    "ned": [Place("red", "member")],
    "blue": [Place("blue", "admin")],
}
PATH = "/users/{user}/things/{thing}"
TABLE = RouteTable(
    [
        Route("GET", PATH, lambda _: None, "Show a thing", Relation.OWNED, JOBS_READ),
        Route("DELETE", PATH, lambda _: None, "Delete a thing", Relation.SELF, JOBS_READ),
        Route("GET", PATH, lambda _: None, "Watch a thing", Relation.OWNED, JOBS_READ, socket=True),
    ]
)


async def tenant_of(user: str, name: str) -> tuple[str, str] | None:
    return ("red", "lamp@3") if (user, name) == ("ann", "lamp") else None


async def must_exist(*_: Any) -> None:
    """It does."""


@pytest.fixture(autouse=True)
def things(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that a new kind takes."""
    monkeypatch.setitem(KINDS, "thing", Owned(re.compile("[a-z]+"), lambda _: tenant_of, must_exist))


class Auth:
    """Knows people by their tokens, which are their names."""

    async def credential(self, headers: HTTPHeaders) -> str:
        return headers["Authorization"].removeprefix("Bearer ")

    async def identify(self, credential: str, _: str) -> Principal:
        admin = {CLUSTER_READ} if credential == "admin" else set()
        return Principal(CallerKind.USER, credential, frozenset({ACCESS, JOBS_READ, *admin}))


async def of_user(name: str) -> list[Place]:
    return PLACES.get(name, [])


SERVICE: Any = SimpleNamespace(
    auth=Auth(),
    limiter=Limiter(lambda: 0.0),
    platform=SimpleNamespace(tenants=SimpleNamespace(of_user=of_user)),
)


def ask(who: str, path: str, method: str = "GET", *, socket: bool = False) -> Admitted:
    line, headers = (
        RequestStartLine(method, path, "HTTP/1.1"),
        HTTPHeaders({"Authorization": f"Bearer {who}", "Host": "hub.example"}),
    )
    request = HTTPServerRequest(start_line=line, headers=headers)
    return asyncio.run(Gatekeeper(SERVICE, TABLE).admit(request, path, "here", socket=socket))


@pytest.mark.parametrize("socket", [False, True])
def test_the_owner_and_admins_get_in_and_the_tenants_admin_to_this_very_object(socket: bool) -> None:
    for who, found in (("ann", "lamp"), ("rita", "lamp@3"), ("admin", "lamp")):
        admitted = ask(who, "/users/ann/things/lamp", socket=socket)
        assert admitted.params == {"user": "ann", "thing": found}
        assert admitted.route.socket is socket


@pytest.mark.parametrize("who", ["ned", "blue", "eve"])
@pytest.mark.parametrize("thing", ["lamp", "nothing"])
@pytest.mark.parametrize("socket", [False, True])
def test_all_others_are_refused_as_if_there_were_none(who: str, thing: str, socket: bool) -> None:
    with pytest.raises(Refused, match=f"thing {thing} does not exist$") as caught:
        ask(who, f"/users/ann/things/{thing}", socket=socket)
    assert caught.value.reason is Reason.NOT_FOUND


def test_owner_only_actions_are_also_hidden_from_the_tenants_admin() -> None:
    assert ask("ann", "/users/ann/things/lamp", "DELETE").params["thing"] == "lamp"
    with pytest.raises(Refused, match=r"thing lamp does not exist$"):
        ask("rita", "/users/ann/things/lamp", "DELETE")


def test_a_name_that_none_can_have_is_looked_up_for_nobody() -> None:
    for who in ("ann", "rita", "eve"):
        with pytest.raises(Refused, match=r"thing D does not exist$"):
            ask(who, "/users/ann/things/D")

"""The service's client of an existing hub: what does not fit is told in words, people are read, and accounts are left alone."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from tornado.web import Application, RequestHandler

from mlp_hub.api.attached_hub import PAGE, AttachedHub
from mlp_hub.api.auth.scopes import HUB_SCOPES
from mlp_hub.domain.errors import Reason, Refused
from mlp_language.render import plain

Answer = tuple[int, Any]
GOOD = {"kind": "service", "name": "mlp", "scopes": [*HUB_SCOPES, "read:hub"]}


class Hub(RequestHandler):
    """Answers as its function says."""

    def initialize(self, answer: Callable[[str, dict[str, str]], Answer]) -> None:
        self.answer = answer

    def get(self) -> None:
        code, body = self.answer(self.request.path, {k: self.get_argument(k) for k in self.request.arguments})
        self.set_status(code)
        self.write(body if isinstance(body, str) else json.dumps(body))


@asynccontextmanager
async def client(answer: Callable[[str, dict[str, str]], Answer]) -> AsyncIterator[AttachedHub]:
    socket, port = bind_unused_port()
    server = HTTPServer(Application([(r".*", Hub, {"answer": answer})]))
    server.add_socket(socket)
    made = AttachedHub(f"http://127.0.0.1:{port}/hub/api", "token")
    try:
        yield made
    finally:
        made.close()
        server.stop()
        await server.close_all_connections()


@pytest.mark.parametrize(
    ("answer", "reason", "told", "logged"),
    [
        ((403, {"message": "no"}), "HubTokenUnknown", "does not know the platform's token", "attach.tokens"),
        ((404, "<html>"), "HubNotFound", "not that of a JupyterHub's API", "attach.hubUrl"),
        ((200, "<html>welcome</html>"), "HubNotFound", "not that of a JupyterHub's API", "hub.baseUrl"),
        (
            (200, {**GOOD, "scopes": [s for s in HUB_SCOPES if s != "tokens"]}),
            "HubScopesMissing",
            "lacks tokens",
            "call attach",
        ),
        ((500, ""), "HubUnavailable", "does not answer", "check attach.hubUrl"),
    ],
)
async def test_what_does_not_fit_is_told_to_all_and_logged_with_its_value(
    answer: Answer, reason: str, told: str, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with client(
        lambda path, _: answer if path.endswith("/user") or answer[0] == 500 else (200, {})
    ) as hub:
        (problem,) = await hub.problems()
        assert (problem.component, problem.reason, problem.fails) == ("hub", reason, True)
        assert told in plain(problem.message)
        assert "127.0.0.1" not in plain(problem.message)
        said = [record.getMessage() for record in caplog.records if "the hub:" in record.getMessage()]
        assert logged in said[0]
        await hub.problems()
        assert len([r for r in caplog.records if "the hub:" in r.getMessage()]) == 1


async def test_a_hub_that_has_got_its_values_is_well_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Answer] = [(403, {})]
    monkeypatch.setattr("mlp_hub.api.attached_hub.AGAIN_S", 0)
    async with client(lambda path, _: answers[-1] if path.endswith("/user") else (200, {})) as hub:
        assert [one.reason for one in await hub.problems()] == ["HubTokenUnknown"]
        answers.append((200, GOOD))
        assert await hub.problems() == []


async def test_people_are_those_of_the_hub_over_all_its_pages() -> None:
    people = [{"name": f"user{n:03}@example.org", "admin": n == 0, "servers": {}} for n in range(PAGE + 5)]

    def answer(path: str, query: dict[str, str]) -> Answer:
        if path.endswith("/users"):
            begin = int(query["offset"])
            return 200, {"items": people[begin : begin + int(query["limit"])]}
        name = path.rpartition("/")[2].replace("%40", "@")
        return next(((200, one) for one in people if one["name"] == name), (404, {}))

    async with client(answer) as hub:
        page, total = await hub.accounts(limit=2, after="user003@example.org")
        assert [one.name for one in page] == ["user004@example.org", "user005@example.org"]
        assert total == PAGE + 5
        assert await hub.accounts(waiting=True) == ([], 0)
        account = await hub.account("user000@example.org")
        assert account is not None
        assert (account.authorized, account.admin) == (True, True)
        assert await hub.account("nobody") is None
        assert set(await hub.find_accounts(["nobody", "user001@example.org"])) == {"user001@example.org"}


async def test_only_people_whom_the_hub_has_no_more_can_be_removed() -> None:
    async with client(lambda path, _: (200, {"name": "ann"}) if path.endswith("/ann") else (404, {})) as hub:
        await hub.deauthorize("gone")
        with pytest.raises(Refused, match="accounts are those of your JupyterHub"):
            await hub.deauthorize("ann")


async def test_accounts_are_never_changed() -> None:
    def answer(path: str, _: dict[str, str]) -> Answer:
        raise AssertionError(path)

    async with client(answer) as hub:
        for act in (
            hub.sign_up("ann", "secret", "10.0.0.1"),
            hub.make_without_login("ann"),
            hub.set_password("ann", "x"),
            hub.log_out("ann"),
            hub.set_admin("ann", True),
            hub.delete_account("ann"),
        ):
            with pytest.raises(Refused, match="accounts are those of your JupyterHub") as caught:
                await act
            assert caught.value.reason is Reason.WRONG_STATE
        assert set(await hub.make_accounts({"ann": "x"})) == {"ann"}

"""`mlp alerts`: what is asked for, and what is refused before."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mlp.client.connection import Answer
from mlp.commands import actions, alerts
from mlp.errors import NotAllowed, Refused, UsageError
from mlp.grammar.parsing import parse

SILENCE = {
    "id": 3,
    "rule": "MLPNodeLost",
    "tenant": "",
    "reason": "a test\x1b[2J",
    "until": "2031-03-01T08:00:00+00:00",
    "made_by": "root",
}
ALERT = {
    "state": "firing",
    "silence": None,
    "severity": "critical",
    "rule": "MLPNodeLost",
    "description": "Node n1 has not been ready for five minutes.",
    "since": "2031-03-01T07:00:00+00:00",
}


class Client:
    """Notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []

    def get(self, path: str) -> dict[str, Any]:
        self.asked.append(("GET", path, None))
        return {"alerts": [ALERT, ALERT | {"silence": 3}], "silences": [SILENCE]}

    def request(self, method: str, path: str, body: Any = None) -> Answer:
        self.asked.append((method, path, body))
        return Answer(201, {}, json.dumps(SILENCE).encode())


def act(*words: str) -> tuple[Client, Any]:
    call = parse(["alerts", *words], "mlp")
    client = Client()
    return client, alerts.act(client, call.names, call.given)  # type: ignore[arg-type]


def test_alerts_are_listed_with_their_silences_as_plain_text() -> None:
    client, table = act()
    assert client.asked == [("GET", "/alerts", None)]
    assert "Node n1 has not been ready" in str(table)
    assert "silenced (3)" in str(table)
    assert "by root: a test" in str(table)
    assert "\x1b[2J" not in str(table)
    assert act("ls", "--tenant", "red")[0].asked == [("GET", "/tenants/red/alerts", None)]


def test_a_silence_has_a_reason_and_an_end() -> None:
    before = datetime.now(UTC)
    client, said = act("silence", "MLPNodeLost", "--lasts", "4h", "--reason", "a test")
    [(method, path, body)] = client.asked
    assert (method, path, body["rule"], body["reason"]) == ("POST", "/silences", "MLPNodeLost", "a test")
    until = datetime.fromisoformat(body["until"])
    assert before + timedelta(hours=4) <= until <= datetime.now(UTC) + timedelta(hours=4)
    assert "mlp alerts end 3" in str(said)
    client, said = act("silence", "--tenant", "red", "--lasts", "1d", "--reason", "x")
    assert client.asked[0][:2] == ("POST", "/tenants/red/silences")
    assert "mlp alerts end 3 --tenant red" in str(said)


def test_silences_are_ended_by_their_ids() -> None:
    assert act("end", "3", "../4", "--tenant", "red")[0].asked == [
        ("DELETE", "/tenants/red/silences/3", None),
        ("DELETE", "/tenants/red/silences/..%2F4", None),
    ]
    assert act("end", "3")[0].asked == [("DELETE", "/silences/3", None)]


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("silence MLPNodeLost --lasts 4h", "needs a reason"),
        ("silence MLPNodeLost --reason x", "needs an end"),
        ("silence MLPNodeLost --reason x --lasts never", "never"),
        ("silence A B --reason x --lasts 4h", "Usage"),
        ("end", "Usage"),
        ("ls --reason x", "Usage"),
        ("end 3 --lasts 4h", "Usage"),
    ],
)
def test_a_call_that_lacks_something_is_refused_in_words(line: str, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        act(*line.split())


class OfATeam(Client):
    """Refuses what is of the whole hub, as the service does for a team's admin."""

    teams: tuple[str, ...] = ("blue", "red")

    def get(self, path: str) -> dict[str, Any]:
        raise Refused("Forbidden", f"this token lacks the scope custom:mlp:cluster:read for {path}")

    def request(self, method: str, path: str, body: Any = None) -> Answer:
        raise Refused("Forbidden", f"{method} {path} {body}: lacks the scope")

    def quota(self) -> Any:
        return [{"tenant": {"name": name}} for name in self.teams]


@pytest.mark.parametrize(
    "line",
    [
        "alerts",
        "alerts silence MLPNodeLost --lasts 4h --reason x",
        "alerts end 3",
        "announce hello",
        "announce rm 3",
    ],
)
def test_a_refusal_without_a_team_names_the_option_and_the_own_teams(line: str) -> None:
    call = parse(line.split(), "mlp")
    with pytest.raises(NotAllowed, match=r"Add --tenant NAME .* Your teams: blue, red"):
        actions.SIMPLE[call.verb.name](OfATeam(), call)  # type: ignore[arg-type]


def test_a_refusal_about_a_team_stays_as_it_is() -> None:
    call = parse(["alerts", "--tenant", "green"], "mlp")
    with pytest.raises(NotAllowed, match="lacks the scope"):
        actions.SIMPLE["alerts"](OfATeam(), call)  # type: ignore[arg-type]
    nobodys = OfATeam()
    nobodys.teams = ()
    with pytest.raises(NotAllowed, match="lacks the scope"):
        actions.SIMPLE["alerts"](nobodys, parse(["alerts"], "mlp"))  # type: ignore[arg-type]

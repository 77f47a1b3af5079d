"""`mlp announce`: what is asked for, and what is refused before."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mlp.client.connection import Answer
from mlp.commands import announcements
from mlp.errors import UsageError
from mlp.grammar.parsing import parse

TOLD = {
    "id": 3,
    "tenant": "",
    "level": "warning",
    "text": "The hub restarts at noon.",
    "until": "2031-03-01T08:00:00+00:00",
}


class Client:
    """Notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []

    def get(self, path: str) -> list[dict[str, Any]]:
        self.asked.append(("GET", path, None))
        return [TOLD]

    def request(self, method: str, path: str, body: Any = None) -> Answer:
        self.asked.append((method, path, body))
        told = TOLD | {"tenant": "red" if "red" in path else ""}
        return Answer(201, {}, json.dumps(told).encode())


def act(line: str) -> tuple[Client, Any]:
    call = parse(line.split(), "mlp")
    client = Client()
    return client, announcements.act(client, call.names, call.given)  # type: ignore[arg-type]


def test_words_are_announced_to_everybody_for_a_day_or_so_long_as_is_said() -> None:
    before = datetime.now(UTC)
    client, said = act("announce The hub restarts at noon. --level warning --lasts 4h")
    [(method, path, body)] = client.asked
    assert (method, path, body["text"], body["level"]) == (
        "POST",
        "/announcements",
        "The hub restarts at noon.",
        "warning",
    )
    until = datetime.fromisoformat(body["until"])
    assert before + timedelta(hours=4) <= until <= datetime.now(UTC) + timedelta(hours=4)
    assert "mlp announce rm 3" in str(said)


def test_a_team_is_told_listed_and_taken_back_at_its_own_address() -> None:
    client, said = act("announce hello --tenant red")
    assert client.asked[0][:2] == ("POST", "/tenants/red/announcements")
    assert "mlp announce rm 3 --tenant red" in str(said)
    assert act("announce --tenant red")[0].asked == [("GET", "/tenants/red/announcements", None)]
    assert act("announce rm 3 ../4 --tenant red")[0].asked == [
        ("DELETE", "/tenants/red/announcements/3", None),
        ("DELETE", "/tenants/red/announcements/..%2F4", None),
    ]


def test_announcements_are_listed_with_their_audience() -> None:
    client, table = act("announce")
    assert client.asked == [("GET", "/announcements", None)]
    assert "everybody" in str(table)
    assert "The hub restarts at noon." in str(table)


@pytest.mark.parametrize(
    "line",
    [
        "announce rm",
        "announce ls more",
        "announce --lasts 4h",
        "announce rm 3 --level info",
        "announce x --level shout",
    ],
)
def test_an_unknown_action_is_refused(line: str) -> None:
    with pytest.raises(UsageError):
        act(line)

"""What `mlp apps` says of what the service answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mlp.client.rest import Client
from mlp.commands import apps
from mlp.errors import UsageError
from mlp.grammar.app_options import wanted
from mlp.grammar.parsing import parse
from mlp.grammar.verbs import COMMAND
from mlp.rendering.format import between
from support.front.shapes import app

FAILED = {"broken": 'Traceback (most recent call last):\n  File "serve.py"\nValueError: no model\n'}
"""What is kept of the replica that failed last, by app."""


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    """Client whose answers are a log of two pages, on which one line is in two parts."""
    pages = {
        0: {"lines": [{"stream": "stderr", "text": "GET /he", "partial": True}], "offset": 7},
        7: {"lines": [{"stream": "stderr", "text": "llo", "partial": False}], "offset": 11},
        11: {"lines": [], "offset": 11},
    }

    def get(_: Client, path: str, /, **query: Any) -> Any:
        assert path in {"/users/ann/apps/hello/logs", "/users/ann/apps/broken/logs"}
        return {"lines": []} if query["replica"] or "broken" in path else pages[query["since"]]

    monkeypatch.setattr(Client, "get", get)
    monkeypatch.setattr(Client, "app", lambda _, name: {"name": name, "tail": FAILED.get(name, "")})
    monkeypatch.setattr(Client, "app_path", lambda _, name: f"/users/ann/apps/{name}")
    return Client("http://hub.test/services/mlp/api/v1", "token")


def test_a_replicas_log_is_its_lines(client: Client) -> None:
    found = apps.act(client, ["logs", "hello"], {})
    assert str(found) == "GET /hello"
    assert [line["text"] for line in found] == ["GET /hello"]


def test_a_replica_that_wrote_nothing_is_said_to(client: Client) -> None:
    assert str(apps.act(client, ["logs", "hello", "1"], {})) == "replica 1 of hello has written nothing"


def test_of_a_replica_that_failed_its_last_lines_are_there(client: Client) -> None:
    found = apps.act(client, ["logs", "broken"], {"previous": True})
    assert str(found) == FAILED["broken"].rstrip("\n")
    assert apps.act(client, ["logs", "broken"], {"previous": True, "tail": 1}) == [
        {"text": "ValueError: no model"}
    ]


def test_where_its_successor_has_written_nothing_one_is_led_to_the_replica_that_failed(
    client: Client,
) -> None:
    said = str(apps.act(client, ["logs", "broken"], {}))
    assert (
        said
        == "replica 0 of broken has written nothing\nOutput of the failed replica: mlp apps logs broken --previous"
    )


def test_where_none_failed_there_is_nothing_of_the_previous_one(client: Client) -> None:
    found = apps.act(client, ["logs", "hello"], {"previous": True})
    assert (list(found), str(found)) == ([], "no lines of a failed replica of hello are stored")


@pytest.mark.parametrize("words", [["logs", "broken", "1", "--previous"], ["show", "broken", "--previous"]])
def test_the_previous_log_is_of_no_number_and_of_no_other_act(words: list[str]) -> None:
    with pytest.raises(
        UsageError, match=r"is not understood. Usage: .*logs NAME \[REPLICA\] \| logs NAME --previous"
    ):
        parse(["apps", *words], COMMAND)


def test_no_lines_at_all_are_not_asked_for() -> None:
    with pytest.raises(UsageError, match="must be at least 1"):
        parse(["apps", "logs", "hello", "--tail", "0"], COMMAND)


def test_a_replica_is_a_number(client: Client) -> None:
    with pytest.raises(UsageError, match="first: is not a whole number"):
        apps.act(client, ["logs", "hello", "first"], {})


def test_its_address_is_whole_as_a_browser_takes_it() -> None:
    mine = app("digits-app")
    address = "http://hub.test/services/mlp/apps/ann/digits-app/"
    assert address in repr(apps.table([mine], "ann"))
    assert address in repr(apps.deployed(mine))
    assert f"Address: {address}" in apps.shown(mine).lines
    assert "Address: /services/mlp/apps/ann/digits-app/" in apps.shown({**mine, "address": None}).lines


def test_an_app_is_deployed_with_an_environment_and_shows_it() -> None:
    given = parse(["apps", "deploy", "net", "--env-name", "torch"], COMMAND).given
    assert wanted("net", given) == {"name": "net", "model_name": "net", "env_name": "torch"}
    assert "Environment: torch" in apps.shown(app("net", env_name="torch")).lines


def test_a_replica_that_waits_is_expected_within_a_range() -> None:
    begin = datetime.now(UTC) + timedelta(days=3)
    start = {
        "p10": begin.isoformat(),
        "p50": begin.isoformat(),
        "p90": (begin + timedelta(hours=2)).isoformat(),
    }
    waits = {"replica": 0, "phase": "queued", "message": "waits for a GPU", "expected_start": None}
    told = {"start": start, "end": None, "runs": 0, "because": ""}
    lines = apps.shown(app("net", running=[{**waits, "forecast": told}])).lines
    (line,) = [one for one in lines if one.startswith("replica 0")]
    assert f"waits for a GPU, expected {between(start)}" in line
    assert "-" in between(start)
    alone = apps.shown(app("net", running=[{**waits, "forecast": None}])).lines
    assert not any("expected" in one for one in alone)

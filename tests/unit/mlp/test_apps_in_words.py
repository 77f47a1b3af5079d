"""What `mlp apps` says of what the service answers."""

from __future__ import annotations

from typing import Any

import pytest

from mlp import apps
from mlp.client import Client
from mlp.errors import UsageError


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    """Client whose answers are a log of two pages, on which one line is in two parts."""
    pages = {
        0: {"lines": [{"stream": "stderr", "text": "GET /he", "partial": True}], "offset": 7},
        7: {"lines": [{"stream": "stderr", "text": "llo", "partial": False}], "offset": 11},
        11: {"lines": [], "offset": 11},
    }

    def get(_: Client, path: str, /, **query: Any) -> Any:
        assert path == "/users/ann/apps/hello/logs"
        return {"lines": []} if query["replica"] else pages[query["since"]]

    monkeypatch.setattr(Client, "get", get)
    monkeypatch.setattr(Client, "app_path", lambda _, name: f"/users/ann/apps/{name}")
    return Client("http://hub.test/services/mlp/api/v1", "token")


def test_a_replicas_log_is_its_lines(client: Client) -> None:
    found = apps.act(client, ["logs", "hello"], {})
    assert str(found) == "GET /hello"
    assert [line["text"] for line in found] == ["GET /hello"]


def test_a_replica_that_wrote_nothing_is_said_to(client: Client) -> None:
    assert str(apps.act(client, ["logs", "hello", "1"], {})) == "replica 1 of hello has written nothing"


def test_a_replica_is_a_number(client: Client) -> None:
    with pytest.raises(UsageError, match="first: is no whole number"):
        apps.act(client, ["logs", "hello", "first"], {})

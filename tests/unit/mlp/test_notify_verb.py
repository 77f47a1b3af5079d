"""`mlp notify`: a test that fails is a failure, and a channel that nothing went through does not work yet."""

from __future__ import annotations

import json
from typing import Any

import pytest

import mlp.cli as program
from mlp.client.rest import Client

CHANNEL = {"name": "hook", "shown": "example.org", "events": ["failed"], "told_at": None, "trouble": None}


class Hub:
    """Answers as the service would."""

    def __init__(self) -> None:
        self.tested: dict[str, Any] = {"taken": True, "trouble": None}
        self.channel: dict[str, Any] = dict(CHANNEL)

    def notifications(self) -> dict[str, Any]:
        return {"browser": [], "quiet": None, "timezone": "UTC", "channels": [self.channel]}

    def test_notification(self, channel: str) -> dict[str, Any]:
        assert channel == "hook"
        return self.tested


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    made = Hub()
    monkeypatch.setattr(Client, "from_env", lambda: made)
    monkeypatch.setattr("mlp.cli.login.remind", lambda: None)
    return made


@pytest.mark.parametrize("why", ["example.org answers 404 Not Found", "example.org cannot be reached"])
def test_a_test_that_is_refused_or_does_not_arrive_ends_with_3(
    hub: Hub, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.tested = {"taken": False, "trouble": why}
    assert program.main(["notify", "test", "hook"]) == 3
    assert why in capsys.readouterr().out
    assert program.main(["notify", "test", "hook", "--json"]) == 3
    assert json.loads(capsys.readouterr().out) == hub.tested


def test_a_test_that_is_taken_ends_with_0(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["notify", "test", "hook"]) == 0
    assert capsys.readouterr().out == "hook accepted it.\n"


def test_a_channel_works_only_after_something_went_through_it(
    hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.main(["notify"]) == 0
    printed = capsys.readouterr().out
    assert "not tried yet: mlp notify test hook" in printed
    assert "works" not in printed
    hub.channel |= {"told_at": "2031-03-01T08:00:00+00:00"}
    assert program.main(["notify"]) == 0
    assert "works" in capsys.readouterr().out

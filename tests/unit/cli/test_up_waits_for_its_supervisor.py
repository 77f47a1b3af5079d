"""`up` has ended only when the supervisor that it started can be found, also if an earlier one had the same plan."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mlp_hub.cli.lifecycle import up
from mlp_hub.cli.supervisor import processes
from mlp_hub.settings import Settings


def test_the_state_of_a_lost_supervisor_with_the_same_plan_is_not_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []
    answered: list[int] = []

    def find(_: Settings, name: str) -> Any:
        looks.append(name)
        return SimpleNamespace(pid=7) if len(looks) > 3 else None

    def request(*_: Any, **__: Any) -> Any:
        answered.append(len(looks))
        return SimpleNamespace(status=200, message="")

    monkeypatch.setattr(processes, "state", lambda _: {"plan": "p", "components": {}, "deaths": []})
    monkeypatch.setattr(processes, "find", find)
    monkeypatch.setattr(up, "request", request)
    up.wait_until_ready(Settings.load({"MLP_HOME": str(tmp_path)}), {"id": "p"}, lambda: None)
    assert set(looks) == {"supervisor"}
    assert answered
    assert min(answered) > 3

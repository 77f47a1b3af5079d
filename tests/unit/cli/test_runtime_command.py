"""`mlp-hub runtime`: what it asks for, what it prints, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mlp_hub.cli.commands import runtimes
from mlp_hub.cli.http import HttpAnswer
from mlp_hub.cli.main import run
from mlp_hub.domain.runtime.runtime import BUILT_IN
from mlp_hub.service.tenants.runtime_rules import runtime_to

MINE = {
    "name": "mine", "tenant": "red", "state": "submitted", "title": "Mine\x1b[2J", "program": ["{program}", "-x"],
    "launcher": None, "changed_by": "rita",
}  # fmt: skip


class Service:
    """Answers as the service would; notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []

    def __call__(self, _settings: object, method: str, path: str, *, body: Any = None) -> HttpAnswer:
        self.asked.append((method, path, body))
        own = [{"name": r.name, "tenant": runtime_to(r).tenant} for r in BUILT_IN.values()]
        return HttpAnswer(200, json.dumps([*own, MINE] if path == "/runtimes" else MINE).encode())


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Service:
    made = Service()
    monkeypatch.setattr(runtimes, "ask_service", made)
    monkeypatch.setenv("MLP_HOME", str(tmp_path))
    return made


def test_those_of_tenants_are_listed_and_obey_no_terminal(service: Service, capsys: Any) -> None:
    assert run(["runtime", "list"]) == 0
    assert capsys.readouterr().out == "red/mine  waits for review  by rita  Mine\\x1b[2J: {program} -x\n"
    assert run(["runtime", "list", "blue"]) == 0
    assert capsys.readouterr().out == "blue has no runtime\n"
    assert run(["runtime", "list", "red", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [MINE]
    assert {a[:2] for a in service.asked} == {("GET", "/runtimes")}


def test_one_is_registered_from_a_file_and_approved_disabled_and_removed_by_name(
    service: Service, tmp_path: Path
) -> None:
    file = tmp_path / "mine.json"
    file.write_text('{"title": "Mine"}')
    assert run(["runtime", "put", "red", "mine", str(file)]) == 0
    for verb in ("approve", "disable", "remove"):
        assert run(["runtime", verb, "red", "mine"]) == 0
    assert service.asked == [
        ("PUT", "/tenants/red/runtimes/mine", {"title": "Mine"}),
        ("POST", "/tenants/red/runtimes/mine:approve", None),
        ("POST", "/tenants/red/runtimes/mine:disable", None),
        ("DELETE", "/tenants/red/runtimes/mine", None),
    ]


@pytest.mark.parametrize("text", ["{", "[]", "\xff"])
def test_a_file_that_holds_no_description_is_refused_before_anything_is_asked(
    service: Service, tmp_path: Path, capsys: Any, text: str
) -> None:
    file = tmp_path / "mine.json"
    file.write_bytes(text.encode("latin-1"))
    assert run(["runtime", "put", "red", "mine", str(file)]) == 2
    assert "mine.json is not a " in capsys.readouterr().err
    assert service.asked == []

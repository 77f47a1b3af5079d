"""The worked example of the how-to is run as it stands there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mlp_hub.cli.main import run

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "simulate.md").read_text()


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found
    return found[1]


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "two-teams.yaml").write_text(block("yaml"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_example_comes_out_as_the_page_says(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", "two-teams.yaml"]) == 0
    assert capsys.readouterr().out.startswith(block("text"))


def test_every_command_of_the_page_works(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commands = re.findall(r"^    mlp-hub (.*?)(?: \|.*)?$", PAGE, re.MULTILINE)
    assert len(commands) == 4
    for command in commands:
        assert run(command.split()) == 0
        if "--json" in command:
            waits = [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"waiting"' in line]
            assert all(w["reason"] and w["expected_start"] for w in waits)
    assert (example / "two-teams.svg").read_text().startswith("<svg")

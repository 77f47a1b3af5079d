"""The worked example of the how-to is run as it stands there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mlp_hub.cli.main import run
from mlp_hub.scheduler.policy import POLICIES

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
    assert len(commands) == 3
    for command in commands:
        assert run(command.split()) == 0
        if "--json" in command:
            waits = [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"waiting"' in line]
            assert all(w["reason"] and w["expected_start"] for w in waits)
    assert (example / "two-teams.svg").read_text().startswith("<svg")


def test_the_table_of_policies_is_what_comes_out_and_no_two_rows_are_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "one-node.yaml"
    file.write_text(re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[1])
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in PAGE.splitlines()
        if line.startswith("| `")
    ]
    assert [row[:2] for row in rows] == [
        [f"`{name}`", str(policy.words)] for name, policy in POLICIES.items()
    ]
    assert len({tuple(row[2:]) for row in rows}) == len(rows)
    for policy, _, *said in rows:
        assert run(["simulate", str(file), "--policy", policy.strip("`")]) == 0
        shown = capsys.readouterr().out
        table = {
            line.split()[0]: re.split(r"  +", line.strip()) for line in shown.splitlines() if line.strip()
        }
        wait = re.search(r"^wait +(.*?) on average", shown, re.MULTILINE)
        stopped = re.search(r"^preemptions +(\d+),", shown, re.MULTILINE)
        assert wait
        assert stopped
        found = [wait[1], *(table[name][3] for name in ("speech", "vision", "high")), stopped[1]]
        assert found == said, policy

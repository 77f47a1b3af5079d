"""`mlp-hub simulate`: what it reads, prints and draws, and how it ends."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from mlp_hub.cli.commands import simulate
from mlp_hub.cli.http import HttpAnswer
from mlp_hub.cli.main import run

SCENARIO = """
version: 1
nodes: [{name: n, cpu: 4}]
tenants: [{name: red}]
jobs:
  - {name: a, workers: 4, duration: 100}
  - {name: b, workers: 4, duration: 50, submit: 1, priority: high}
policy: {preemption: false}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "two.yaml"
    path.write_text(SCENARIO)
    return str(path)


def test_json_is_one_object_a_line_and_the_summary_last(
    scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["simulate", scenario, "--json"]) == 0
    captured = capsys.readouterr()
    lines = [json.loads(line) for line in captured.out.splitlines()]
    assert captured.err == ""
    assert lines[0] == {"t": 0.0, "event": "submitted", "job": "a"}
    assert [*lines[-1]] == ["summary"]
    assert lines[-1]["summary"]["makespan_s"] == 150.0
    assert lines[-1]["summary"]["cycle_p99_ms"] > 0


def test_the_same_file_gives_the_same_output_apart_from_measured_times(
    scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = []
    for _ in range(2):
        run(["simulate", scenario, "--json"])
        *lines, last = capsys.readouterr().out.splitlines()
        summary = json.loads(last)["summary"]
        del summary["cycle_p50_ms"], summary["cycle_p99_ms"]
        outputs.append((lines, summary))
    assert outputs[0] == outputs[1]


def test_without_json_a_person_reads_tables(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", scenario]) == 0
    assert capsys.readouterr().out.startswith("jobs                 2, of them 2 finished\n")


def test_a_dash_is_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbf" + SCENARIO.encode()))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert run(["simulate", "-", "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 10


def test_another_policy_may_be_tried_and_an_unknown_one_is_refused(
    scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["simulate", scenario, "--policy", "fifo"]) == 0
    capsys.readouterr()
    assert run(["simulate", scenario, "--policy", "lottery"]) == 2
    assert "policy lottery does not exist; choose one of" in capsys.readouterr().err


def test_a_plot_is_drawn_into_a_file(
    scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plot = tmp_path / "two.svg"
    assert run(["simulate", scenario, "--plot", str(plot), "--json"]) == 0
    assert "<title>two.yaml, policy fair</title>" in plot.read_text()
    assert len(capsys.readouterr().out.splitlines()) == 10
    assert run(["simulate", scenario, "--plot", str(tmp_path / "no" / "two.svg")]) == 1
    assert run(["simulate", scenario, "--plot", str(tmp_path / "two.png")]) == 2
    assert not (tmp_path / "two.png").exists()
    assert "cannot be written: No such file or directory" in capsys.readouterr().err


def test_a_scenario_with_faults_ends_with_2_and_names_them_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(
        "version: 1\nnodes: [{name: n, cpus: 1}]\ntenants: [{name: red}]\njobs: [{name: a, cpu: -1}]\n"
    )
    assert run(["simulate", str(path), "--json"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "line 2, nodes[0].cpus: there is no such key here; did you mean cpu?\n" in captured.err
    assert "line 4, jobs[0].cpu: -1 is wrong here; it takes cores from 0 on\n" in captured.err


@pytest.mark.parametrize(
    ("content", "says"), [(None, "cannot be read: No such file"), (b"\xff\xfe\x00", "is not text in UTF-8")]
)
def test_a_file_that_is_not_there_or_no_text_ends_with_2(
    content: bytes | None, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.yaml"
    if content is not None:
        path.write_bytes(content)
    assert run(["simulate", str(path)]) == 2
    assert says in capsys.readouterr().err


def test_a_reader_that_goes_away_ends_it_quietly(tmp_path: Path) -> None:
    path = tmp_path / "long.yaml"
    path.write_text(SCENARIO.replace("duration: 100", "duration: 1, count: 20000, every: 1"))
    command = [sys.executable, "-c", "import sys; from mlp_hub.cli.main import run; sys.exit(run())"]
    process = subprocess.Popen(
        [*command, "simulate", str(path), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert b'"submitted"' in process.stdout.readline()
    process.stdout.close()
    assert process.wait(60) == 0
    assert process.stderr.read() == b""
    process.stderr.close()


def test_an_export_is_yaml_that_runs_with_its_remarks_on_top(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []
    begin = "2026-11-14T23:00:00+00:00"
    document = {"version": 1, "nodes": [{"name": "n", "cpu": 4}], "tenants": [{"name": "red"}]}
    jobs = [
        {"name": "ann/a", "tenant": "red", "workers": "2:4", "duration": 10},
        {
            "name": "ann/b",
            "tenant": "red",
            "submit": 574_123.5,
            "duration": 10,
            "topology": {"required": "rack"},
        },
    ]

    def answer(_settings: object, method: str, path: str, **_more: object) -> HttpAnswer:
        asked.append(f"{method} {path}")
        return HttpAnswer(
            200,
            json.dumps(
                {
                    **document,
                    "jobs": jobs,
                    "remarks": ["One job is guessed."],
                    "begin": begin,
                    "notes": ["runs since 2026-11-14 22:00:00 UTC", "submitted 2026-11-21 14:28:43 UTC"],
                }
            ).encode(),
        )

    monkeypatch.setattr(simulate, "ask_service", answer)
    assert run(["simulate", "--export", "now"]) == 0
    text = capsys.readouterr().out
    assert "# One job is guessed." in text
    assert "# Seconds count from 2026-11-14 23:00:00 UTC." in text
    assert "duration: 10}  # runs since 2026-11-14 22:00:00 UTC\n" in text
    assert "  # submitted 2026-11-21 14:28:43 UTC\n" in text
    path = tmp_path / "now.yaml"
    path.write_text(text)
    assert run(["simulate", str(path)]) == 0
    assert run(["simulate", "--export", "7", "--json"]) == 0
    assert asked == ["GET /simulate?source=now", "GET /simulate?source=history&days=7"]


@pytest.mark.parametrize(
    "args", [[], ["--export", "now", "file.yaml"], ["--export", "soon"], ["--export", "-1"]]
)
def test_an_export_that_cannot_be_is_refused(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", *args]) == 2
    assert "--export" in capsys.readouterr().err

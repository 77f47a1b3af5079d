"""The command `mlp` against a stand-in of the service: statuses, JSON, patterns, logins, completion."""

from __future__ import annotations

import json
import stat
import threading

import pytest

from mlp.cli import main
from mlp.client import settings
from mlp.client.rest import Client
from mlp.commands.completion import Remembering, complete
from mlp.grammar.verbs import MAGIC
from support.clients.mlp_stand_in import FAILED, FINISHED, RUNNING, TOKEN, job_record, point
from support.waiting import wait_for


def test_the_exit_status_of_the_command_shows_the_outcome(world, tmp_path, monkeypatch, capsys):
    world.jobs = {"good": job_record("good", **FINISHED), "bad": job_record("bad", **FAILED)}
    assert main(["watch", "good"]) == 0
    assert main(["watch", "bad"]) == 1
    assert main(["watch"]) == 2
    assert main(["submit", "--wokers", "2"]) == 2
    assert main(["watch", "none"]) == 3
    monkeypatch.setenv("MLP_TOKEN", "wrong")
    assert main(["jobs"]) == 3
    monkeypatch.setattr(Client, "__init__", _impatient(Client.__init__))
    monkeypatch.setenv("MLP_API_URL", "http://127.0.0.1:9/api/v1")
    assert main(["jobs"]) == 4
    assert "does not answer" in capsys.readouterr().err


def _impatient(init):
    def made(self, *args, **more):
        init(self, *args, **{**more, "patience": 0})

    return made


def test_every_verb_speaks_json(world, tmp_path, capsys):
    (tmp_path / "a.py").write_text("print(1)")
    world.jobs["digits"] = job_record(**FINISHED)
    world.points["digits"] = [point(1, loss=0.5)]
    lines = [
        ["jobs"], ["job", "digits"], ["logs", "digits"], ["why", "digits"], ["quota"], ["runtimes"], ["offer", "-w", "2"],
        ["watch", "digits"], ["submit", str(tmp_path / "a.py"), "-n", "new"], ["resubmit", "digits"], ["cancel", "new"],
        ["submit", str(tmp_path / "a.py"), "--dry-run"], ["delete", "new"],
    ]  # fmt: skip
    for words in lines:
        assert main([*words, "--json"]) == 0, words
        json.loads(capsys.readouterr().out)
    assert main(["job", "none", "--json"]) == 3
    assert json.loads(capsys.readouterr().err) == {"error": "NotFound", "msg": "job none does not exist"}


def test_a_script_without_an_end_is_not_waited_for_and_arguments_go_along(world, tmp_path, capsys):
    (tmp_path / "a.py").write_text("print(1)")
    assert main(["submit", str(tmp_path / "a.py"), "-n", "new", "--detach", "--", "--epochs", "5"]) == 0
    assert capsys.readouterr().out == "new\n"
    assert world.requests[-1]["args"] == ["--epochs", "5"]


def test_several_jobs_are_steered_by_pattern_and_by_filter(world, capsys):
    for i, phase in enumerate(["queued", "running", "finished"]):
        state = {"queued": "creating"}.get(phase, phase)
        world.jobs[f"nap-{i}"] = job_record(f"nap-{i}", phase=phase, state=state)
    world.jobs["digits"] = job_record(**RUNNING)
    assert main(["cancel", "nap-*"]) == 0
    assert capsys.readouterr().out == "nap-0 was cancelled\nnap-1 was cancelled\n"
    assert main(["delete", "--state", "cancelled"]) == 0
    assert set(world.jobs) == {"nap-2", "digits"}
    assert main(["delete", "nap-2", "digits"]) == 3
    assert set(world.jobs) == {"digits"}
    assert main(["resume", "--state", "suspended"]) == 3


def test_login_stores_a_token_that_works_for_its_owner_only(world, monkeypatch, capsys):
    url = world.url
    monkeypatch.delenv("MLP_API_URL")
    monkeypatch.delenv("MLP_TOKEN")
    monkeypatch.setattr("sys.stdin", _Input("wrong\n"))
    assert main(["login", url, "--token-stdin"]) == 3
    assert not settings.login_file().exists()
    monkeypatch.setattr("sys.stdin", _Input(f"{TOKEN}\n"))
    assert main(["login", url, "--token-stdin"]) == 0
    assert stat.S_IMODE(settings.login_file().stat().st_mode) == 0o600
    assert "ann" in capsys.readouterr().out
    assert main(["jobs"]) == 0


class _Input:
    def __init__(self, text):
        self.text = text

    def isatty(self):
        return False

    def readline(self):
        return self.text


def test_a_job_that_has_not_ended_is_changed(world, capsys):
    world.jobs["digits"] = job_record()
    assert main(["update", "digits", "--priority", "low", "--time-limit", "2h"]) == 0
    assert capsys.readouterr().out.strip() == "digits: priority low, time limit 2 h"
    assert main(["update", "digits", "--time-limit", "none"]) == 0
    assert capsys.readouterr().out.strip() == "digits: priority low, time limit none"
    assert main(["update", "digits"]) == 2
    assert "--priority, --time-limit, --place" in capsys.readouterr().err
    assert main(["update", "digits", "--time-limit", "soon"]) == 2


def test_a_note_is_attached_shown_and_removed(world, capsys):
    world.jobs["digits"] = job_record()
    assert main(["note", "digits", "with the", "larger batch"]) == 0
    assert capsys.readouterr().out.strip() == "digits: with the larger batch"
    assert main(["job", "digits"]) == 0
    assert "  Note: with the larger batch\n" in capsys.readouterr().out
    assert main(["note", "digits", "--", "--lr 0.1"]) == 0
    assert capsys.readouterr().out.strip() == "digits: --lr 0.1"
    assert main(["note", "digits", ""]) == 0
    assert capsys.readouterr().out.strip() == "digits: no note"
    assert main(["job", "digits"]) == 0
    assert "Note" not in capsys.readouterr().out


@pytest.mark.parametrize("line", [[], ["digits"], ["digits", "--user", "bob", "x"], ["digits", "--lr", "x"]])
def test_a_note_without_a_job_or_a_text_is_refused_before_any_request(world, capsys, line):
    assert main(["note", *line]) == 2
    assert "note" in capsys.readouterr().err
    assert not world.requests


@pytest.mark.parametrize(
    "line",
    [
        ["ask", "red", "--cpu", "4"],
        ["ask", "red", "--reason", "x"],
        ["ask", "red", "--cpu", "-4", "--reason", "x"],
        ["ask", "red", "--storage", "much", "--reason", "x"],
        ["join"],
        ["approve", "red"],
        ["cap", "red", "--jobs", "-1"],
        ["joins", "red", "--note", "x"],
        ["leave", "red"],
    ],
)
def test_an_invalid_team_action_is_refused_before_any_request(world, capsys, line):
    assert main(["team", *line]) == 2
    assert capsys.readouterr().err


def test_a_job_is_submitted_again_in_another_size(world, capsys):
    world.jobs["digits"] = job_record(**FINISHED)
    assert main(["resubmit", "digits", "--workers", "1", "--time-limit", "20m", "--priority", "high"]) == 0
    assert (
        capsys.readouterr().out.strip()
        == "digits was submitted again as run 2. Follow it: mlp watch digits@2"
    )
    now = world.jobs["digits"]
    assert (now["workers"], now["time_limit"], now["priority"]) == (1, 1200, "high")
    assert list(world.keys.values()) == ["digits"], "delivered twice it would be one run"
    assert main(["resubmit", "digits", "--workers", "none"]) == 2
    assert "--workers none" in capsys.readouterr().err
    assert main(["cancel", "digits", "--workers", "1"]) == 2


def test_completion_never_waits_long_and_has_later_what_came_late():
    answer = threading.Event()
    asked = []

    class Slow:
        def jobs(self):
            asked.append(1)
            assert answer.wait(60)
            return [{"name": "digits", "run": 1}]

    names = Remembering(Slow, wait=0.01)
    assert [names("jobs"), names("jobs")] == [[], []]
    answer.set()
    wait_for(lambda: names("jobs") == ["digits"])
    assert asked == [1]


def test_completion_of_a_program_knows_scripts_notebooks_and_the_way_to_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("train.py", "try.ipynb", "tree.txt", ".hidden.py"):
        (tmp_path / name).write_text("")
    (tmp_path / "trials").mkdir()
    (tmp_path / "trials" / "a.py").write_text("")
    found = {"sweeps": ["tried"]}
    lookup = lambda kind: found.get(kind, [])  # noqa: E731 - short
    assert complete(["submit"], "tr", MAGIC, lookup) == ["train.py", "trials/", "try.ipynb"]
    assert complete(["submit"], "trials/", MAGIC, lookup) == ["trials/a.py"]
    assert complete(["submit"], "nowhere/", MAGIC, lookup) == []
    assert complete(["sweep"], "tri", MAGIC, lookup) == ["trials/", "tried"]
    assert complete(["sweeps"], "", MAGIC, lookup) == ["cancel", "extend", "ls", "rm", "show", "trials"]
    assert complete(["sweeps", "show"], "", MAGIC, lookup) == ["tried"]

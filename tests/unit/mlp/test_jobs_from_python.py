"""Jobs from Python: submitted, waited for, run again under their name, tried dry, against a stand-in of the service."""

from __future__ import annotations

import pytest

import mlp
from mlp.cli import main
from mlp.client.rest import Client
from mlp.commands.completion import Remembering, complete
from mlp.errors import JobFailed, JobTimeout, Refused
from mlp.grammar.verbs import MAGIC
from mlp.handles.dry_run import dry_run
from mlp.handles.job import Job
from mlp.handles.sending import free_name
from support.clients.mlp_stand_in import FAILED, FINISHED, RUNNING, client, job_record


def test_submit_wait_and_result(world):
    world.step_every = 0.05
    job = mlp.submit(code="print(1)", workers=2, name="digits", env={"A": 1})
    assert world.requests[-1] == {"name": "digits", "workers": 2, "code": "print(1)", "env": {"A": "1"}}
    assert job.result(timeout=10) == {
        "epoch": 3,
        "loss": pytest.approx(1 / 3),
        "accuracy": pytest.approx(1 - 0.1 / 3),
    }
    assert (job.phase, job.state, job.progress) == ("finished", "finished", 100)
    assert [p["epoch"] for p in _rows(job.metrics())] == [1, 2, 3]


def _rows(metrics):
    return metrics if isinstance(metrics, list) else metrics.to_dict("records")


def test_a_job_that_failed_raises_with_its_cause_and_tail(world):
    world.jobs["digits"] = job_record(**FAILED)
    with pytest.raises(JobFailed, match=r"rank 1, exit code 3\)\nTraceback\nValueError: no such digit"):
        mlp.job("digits").result()


def test_a_wait_beyond_its_timeout_ends_and_the_job_continues(world):
    world.jobs["digits"] = job_record(**RUNNING)
    with pytest.raises(JobTimeout, match="still running"):
        mlp.job("digits").wait(timeout=0.05)
    assert world.jobs["digits"]["phase"] == "running"


def test_an_unknown_option_of_submit_is_named():
    with pytest.raises(TypeError, match="no option 'worker'"):
        mlp.submit(code="1", worker=2)


def test_a_used_name_starts_the_next_run_and_an_active_run_is_shown_with_a_note(world, capsys):
    world.jobs["digits"] = job_record(**FINISHED)
    again = mlp.submit(code="1", name="digits")
    assert (again.name, again.run, again.reference, again.note) == ("digits", 2, "digits@2", "")
    assert "<Job digits run 2: " in repr(again)
    same = mlp.submit(code="2", name="digits")
    assert (same.run, same.data["code"]) == (2, "1")
    word = "Nothing was submitted: digits run 2 still waits, and is shown here as it was submitted. To run it again, cancel it first, or give another --name\n"
    assert capsys.readouterr().err == word
    world.jobs["digits"].update(RUNNING)
    assert mlp.submit(code="3", name="digits").note.startswith(
        "Nothing was submitted: digits run 2 still runs, and is shown here as it was submitted."
    )
    world.jobs["digits"].update(FINISHED)
    first = mlp.job("digits@1")
    assert (first.run, first.refresh().run, mlp.job("digits").run) == (1, 1, 2)


def test_a_run_that_ends_while_the_next_is_refused_is_followed_by_it(world, monkeypatch):
    world.jobs["digits"] = job_record(**RUNNING)
    look = Client.job

    def ended(self, *args):
        world.jobs["digits"].update(FINISHED)
        return look(self, *args)

    monkeypatch.setattr(Client, "job", ended)
    assert mlp.submit(code="1", name="digits").run == 2


def test_our_own_names_never_show_another_job(world):
    first, second = (mlp.submit(code="1", runtime="tf") for _ in range(2))
    assert first.name != second.name
    assert not second.note


def test_replace_is_sent_along(world, tmp_path):
    (tmp_path / "a.py").write_text("print(1)")
    assert main(["submit", str(tmp_path / "a.py"), "-n", "Big_run", "--replace"]) == 0
    assert world.requests[-1]["replace"] is True
    assert main(["submit", str(tmp_path / "a.py"), "-n", "other"]) == 0
    assert "replace" not in world.requests[-1]
    assert "--name x, --replace" in repr(mlp.submit(code="1", name="x", replace=True, dry_run=True))


def test_the_command_says_a_time_limit_back_and_warns_of_one_without_a_unit(world, tmp_path, capsys):
    (tmp_path / "a.py").write_text("print(1)")
    word = "--time-limit 90: a number without a unit is seconds, so the job is ended after 1 min 30 s; for 90 minutes write 90m\n"
    assert main(["submit", str(tmp_path / "a.py"), "-n", "a", "--time-limit", "90"]) == 0
    shown = capsys.readouterr()
    assert shown.err == word
    assert ", time limit 1 min 30 s. Follow it: mlp watch a" in shown.out
    assert main(["submit", str(tmp_path / "a.py"), "-n", "b", "--time-limit", "90m"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert ", time limit 1 h 30 min. Follow it" in shown.out
    world.jobs["a"].update(FINISHED)
    assert main(["resubmit", "a", "--time-limit", "90"]) == 0
    assert capsys.readouterr().out.endswith(word)


def test_the_command_also_shows_an_active_run(world, tmp_path, capsys):
    (tmp_path / "a.py").write_text("print(1)")
    world.jobs["digits"] = job_record(run=2, **RUNNING)
    assert main(["submit", str(tmp_path / "a.py"), "-n", "digits"]) == 0
    shown = capsys.readouterr()
    assert shown.err.startswith(
        "Nothing was submitted: digits run 2 still runs, and is shown here as it was submitted."
    )
    assert "Follow it: mlp watch digits@2" in shown.out
    assert len(world.jobs) == 1
    assert main(["jobs"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:3] == ["digits", "2", "running"]


def test_a_delete_that_is_said_again_takes_no_earlier_run_with_it(world, capsys):
    world.jobs["digits@1"] = job_record(**FINISHED)
    world.jobs["digits"] = job_record(run=2, **FINISHED)
    assert main(["delete", "digits"]) == 0
    assert capsys.readouterr().out == "digits run 2 was deleted\n"
    assert ("DELETE", "/users/ann/jobs/digits%402") in world.seen
    assert set(world.jobs) == {"digits@1"}


def test_a_run_that_was_named_is_named_in_the_answer(world, capsys):
    world.jobs["digits@1"] = job_record(**FINISHED)
    world.jobs["digits"] = job_record(run=2, **FINISHED)
    assert main(["delete", "digits@1"]) == 0
    assert capsys.readouterr().out == "digits run 1 was deleted\n"


@pytest.mark.parametrize("verb", ["watch", "logs", "why", "job", "cancel", "delete", "resubmit"])
def test_a_job_that_is_not_there_is_answered_with_the_nearest_that_is(world, capsys, verb):
    world.jobs["digits"] = job_record(**FINISHED)
    assert main([verb, "digist"]) == 3
    assert capsys.readouterr().err == "mlp: job digist does not exist. Did you mean digits?\n"
    assert main([verb, "other"]) == 3
    assert capsys.readouterr().err == "mlp: job other does not exist\n"


def test_a_pattern_means_every_run_and_one_with_an_at_certain_ones(world, capsys):
    for run in (1, 2):
        world.jobs[f"lr-0.1@{run}"] = job_record("lr-0.1", run=run, **FINISHED)
    world.jobs["lr-0.1"] = job_record("lr-0.1", run=3, **FINISHED)
    world.jobs["other"] = job_record("other", **FINISHED)
    assert main(["delete", "*@1", "lr*@2"]) == 0
    assert set(world.jobs) == {"lr-0.1"}
    assert main(["resubmit", "lr*"]) == 0
    assert "lr-0.1 run 3 was submitted again as run 4" in capsys.readouterr().out
    world.jobs["lr-0.1"].update(FINISHED)
    assert main(["delete", "lr*"]) == 0
    assert world.jobs == {}


def test_completion_knows_the_runs_of_names_that_have_several(world):
    world.jobs["digits@1"] = job_record(**FINISHED)
    world.jobs["digits"] = job_record(run=2, **RUNNING)
    world.jobs["once"] = job_record("once")
    assert complete(["watch"], "", MAGIC, Remembering()) == ["digits", "digits@1", "digits@2", "once"]
    assert complete(["watch"], "digits@", MAGIC, Remembering()) == ["digits@1", "digits@2"]


@pytest.mark.parametrize(
    ("name", "taken", "free"),
    [
        ("digits", {"digits"}, "digits-2"),
        ("digits-2", {"digits", "digits-2"}, "digits-3"),
        ("mpi-1121-103205", {"mpi-1121-103205"}, "mpi-1121-103205-2"),
        ("a" * 50, {"a" * 50}, "a" * 48 + "-2"),
    ],
)
def test_free_names(name, taken, free):
    assert free_name(name, taken) == free


def test_a_dry_run_submits_nothing(world):
    shown = repr(mlp.submit(code="1", workers=2, dry_run=True))
    assert "Would submit a program of 1 line: --workers 2" in shown
    shown = repr(mlp.submit(code="1", name="a", ram="2G", time_limit="5 minutes", dry_run=True))
    assert "--ram 2 GiB" in shown
    assert "--time-limit 5 min" in shown
    assert "Would be a: 1 rank with runtime plain" in shown
    assert "Would start now: 2 ranks on n1" in shown
    shown = repr(mlp.submit(code="1", data=["digits:train", "ann/big"], params={"lr": 0.1}, dry_run=True))
    assert "--data digits:train, --data ann/big" in shown
    assert "--param lr=0.1" in shown
    shown = repr(mlp.submit(code="1", name="a", workers="2:4", dry_run=True))
    assert "Would be a: 2 to 4 ranks with runtime plain" in shown
    assert world.jobs == {}


def test_a_dry_run_is_refused_as_submit_is(world, tmp_path, capsys):
    (tmp_path / "a.py").write_text("print(1)")
    asked = ["submit", str(tmp_path / "a.py"), "--workdir", "nowhere"]
    assert main([*asked, "--dry-run"]) == 3
    assert "your home directory has no directory nowhere" in capsys.readouterr().err
    with pytest.raises(Refused, match="your home directory has no directory nowhere"):
        mlp.submit(code="1", workdir="nowhere", dry_run=True)
    assert world.jobs == {}


def test_a_dry_run_reports_an_active_run_of_the_name_and_an_automatic_name_takes_the_next_number(world):
    world.jobs["digits"] = job_record("digits", **RUNNING)
    assert "digits run 1 still runs" in repr(mlp.submit(code="1", name="digits", dry_run=True))
    shown = repr(dry_run(client(world), {"name": "digits", "code": "1"}, named=False))
    assert "Would be digits-2: 1 rank" in shown
    assert set(world.jobs) == {"digits"}


def test_a_dry_run_at_a_hub_that_knows_no_previews_says_what_the_shape_would_get(world, capsys):
    world.knows_previews = False
    shown = repr(mlp.submit(code="1", name="a", dry_run=True))
    assert "Would submit a program of 1 line: --name a" in shown
    assert "Would be" not in shown
    assert "Would start now: 2 ranks on n1" in shown
    assert ("GET", "/offer") in world.seen


def test_a_job_is_written_with_its_name_its_state_and_its_reason() -> None:
    client = Client("http://hub.test/services/mlp/api/v1", "token")
    failure = {
        "cause": "program-error",
        "rank": 0,
        "exit_code": 1,
        "signal": None,
        "message": "rank 0: ValueError: boom",
    }
    said = [
        repr(Job(client, job_record(**of)))
        for of in (
            {"position": None},
            {"phase": "running", "progress": 35},
            {"phase": "failed", "failure": failure},
        )
    ]
    assert said == [
        "<Job digits: queued>",
        "<Job digits: running, 35 %>",
        "<Job digits: failed, rank 0: ValueError: boom>",
    ]

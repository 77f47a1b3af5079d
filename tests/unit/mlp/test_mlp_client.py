"""The client against a stand-in of the service, over TCP and a UNIX socket."""

from __future__ import annotations

import json
import stat
import threading

import pytest

import mlp
from mlp import settings
from mlp.cli import main
from mlp.client import Client
from mlp.completion import Remembering, complete
from mlp.dryrun import dry_run
from mlp.errors import JobFailed, JobTimeout, Refused, Unauthorized, Unreachable, UsageError
from mlp.handle import Job, free_name
from mlp.transport import Address
from mlp.verbs import MAGIC
from mlp_stand_in import FAILED, FINISHED, RUNNING, TOKEN, StandIn, job_record, line, point, ranks
from waiting import wait_for


@pytest.fixture
def world(monkeypatch, tmp_path):
    with StandIn() as stand_in:
        for name in ("JUPYTERHUB_USER", "JUPYTERHUB_API_TOKEN", "MLP_JOB", "MLP_USER", "MLP_JOB_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr("mlp.provenance.told", dict)  # where tests run is nobody's matter
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        for name, value in stand_in.env().items():
            monkeypatch.setenv(name, value)
        yield stand_in


def client(world, **options):
    return Client(world.url, TOKEN, sleep=lambda _: None, **options)


def test_a_unix_socket_is_an_address(tmp_path):
    with StandIn(socket=tmp_path / "mlp.sock") as world:
        world.jobs["digits"] = job_record()
        asked = Client(world.url, TOKEN)
        assert asked.user == "ann"
        assert asked.job("digits")["phase"] == "queued"
        assert [f["type"] for f in _frames(asked, "digits", stop="synced")][-1] == "synced"


def _frames(asked, name, stop):
    from mlp import follow

    for frame in follow.frames(asked, name, "ann", sleep=lambda _: None):
        yield frame
        if frame["type"] == stop:
            return


@pytest.mark.parametrize("url", ["ftp://x", "http://", "nonsense", "http+unix:///a"])
def test_an_address_that_cannot_be_one_is_refused(url):
    with pytest.raises(UsageError, match="not the address of a service"):
        Address.parse(url)


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("hub:8000", "http://hub:8000/services/mlp/api/v1"),
        ("https://hub/hub/home", "https://hub/services/mlp/api/v1"),
        ("http://h/services/mlp/api/v1/", "http://h/services/mlp/api/v1"),
    ],
)
def test_the_hubs_address_is_enough_to_log_in(given, url):
    assert settings.normalise_url(given) == url


def test_an_outage_in_the_middle_is_not_seen(world):
    world.jobs["digits"] = job_record()
    world.fail_next = [(503, {}), (0, {}), (429, {"Retry-After": "0"})]
    assert client(world).job("digits")["name"] == "digits"


def test_a_submit_that_is_repeated_makes_one_job(world):
    asked = client(world)
    world.fail_next = [(503, {}), (503, {})]
    asked.user  # noqa: B018 - asked once, before the trouble
    world.fail_next = [(503, {})]
    assert asked.submit({"name": "digits", "code": "1"})["name"] == "digits"
    keys = set(world.keys)
    assert len(keys) == 1


def test_a_delete_whose_answer_was_lost_is_done(world):
    world.fail_next = [(503, {})]
    assert client(world, patience=5).delete("gone", "ann") == {}
    with pytest.raises(Refused, match="job gone does not exist"):
        client(world).delete("gone", "ann")


def test_each_kind_of_refusal_is_a_separate_error(world):
    with pytest.raises(Refused, match="job x does not exist") as refused:
        client(world).job("x", "ann")
    assert refused.value.reason == "NotFound"
    with pytest.raises(Unauthorized, match="not valid"):
        Client(world.url, "wrong").job("x", "ann")
    with pytest.raises(Unreachable, match=r"does not answer at 127\.0\.0\.1:9 "):
        Client("http://127.0.0.1:9/api/v1", TOKEN, patience=0).job("x", "ann")
    with pytest.raises(Unreachable, match="is MLP_API_URL correct"):
        Client(world.url + "/elsewhere", TOKEN, patience=0).job("x", "ann")
    world.fail_next = [(503, {})]
    with pytest.raises(Unreachable, match="away for a moment"):
        client(world, patience=0).job("x", "ann")


def test_lists_are_read_over_all_pages(world):
    world.jobs = {f"job-{i}": job_record(f"job-{i}") for i in range(5)}
    assert len(client(world).jobs()) == 5


def test_a_log_is_read_over_all_pages_and_its_end_alone(world):
    world.jobs["digits"] = job_record(**RUNNING, ranks=ranks("running"))
    world.lines["digits"] = [line(f"line {i}", i) for i in range(5)]
    job = Job(client(world), job_record())
    assert [x["text"] for x in job.logs(0)] == [f"line {i}" for i in range(5)]
    assert repr(job.logs(tail=2)) == "0: line 3\n0: line 4"


def test_a_job_that_was_stopped_and_waits_again_still_shows_what_all_its_ranks_wrote(world):
    world.jobs["digits"] = job_record(phase="queued", restarts=1, workers="1:3")
    world.lines["digits"] = [line("saved on SIGTERM")]
    assert repr(Job(client(world), job_record()).logs()) == "0: saved on SIGTERM"
    world.jobs["digits"] = job_record(phase="queued", restarts=1, workers=1)
    assert repr(Job(client(world), job_record()).logs()) == "saved on SIGTERM"


def test_ranks_that_a_job_has_given_up_still_show_what_they_wrote(world):
    small = {**RUNNING, "workers": "1:3", "restarts": 1, "ranks": ranks("running")[:1]}
    world.jobs["digits"] = job_record(**small)
    world.lines["digits"] = [line("as one of three")]
    assert repr(Job(client(world), job_record()).logs()) == "0: as one of three"
    asked = [q["rank"] for q in world.requests if "rank" in q]
    assert repr(Job(client(world), job_record()).logs(2)) == "Rank 2 of digits has written nothing."
    assert asked == [] or {"0", "1", "2"} <= set(asked)


def test_a_state_that_is_none_is_refused_with_those_that_are(world, capsys):
    world.jobs["digits"] = job_record()
    assert main(["jobs", "--state", "finshed"]) == 2
    assert capsys.readouterr().err.startswith(
        "mlp: --state finshed: is not a state; did you mean finished? States: creating, running, finished, error, "
    )
    assert main(["cancel", "--state", "foo"]) == 2
    assert capsys.readouterr().err.startswith(
        "mlp: --state foo: is not a state; choose one of creating, running, "
    )
    assert main(["jobs", "--state", "queued"]) == 0
    assert "digits" in capsys.readouterr().out
    assert main(["jobs", "--state", "running"]) == 0
    assert capsys.readouterr().out == "No job is running; to list all 1 jobs: mlp jobs\n"


def test_a_hint_is_given_only_for_similar_options(world, capsys):
    for flag, hint in (("--wrokers", "Did you mean --workers?"), ("--quux", "It has: ")):
        assert main(["submit", "a.py", flag, "2"]) == 2
        assert hint in capsys.readouterr().err


def test_a_job_without_output_says_why_there_is_none(world):
    world.jobs["digits"] = job_record()
    assert "digits is queued and has no output yet; mlp why digits shows more." in repr(
        Job(client(world), job_record()).logs()
    )
    world.jobs["digits"] = job_record(phase="finished", ranks=ranks("finished"))
    assert repr(Job(client(world), job_record()).logs()) == "digits is finished; it has written nothing."


def test_a_log_that_was_lost_is_not_taken_for_one_of_a_job_that_wrote_nothing(world, monkeypatch):
    monkeypatch.setattr("mlp.handle.clock_time", str)
    world.jobs["digits"] = job_record(phase="finished", ranks=ranks("finished"))
    world.attempts["digits"] = [
        {"attempt": 1, "stages": [{"stage": "first-line", "time": "2031-03-01T10:00:00Z"}]},
        {"attempt": 2, "stages": [{"stage": "started", "time": "2031-03-01T11:00:00Z"}]},
    ]
    assert repr(Job(client(world), job_record()).logs()) == (
        "digits is finished. It wrote its first line at 2031-03-01T10:00:00Z, but its log has no readable lines, perhaps after a power cut or on a full disk."
    )
    world.jobs["digits"] = job_record(phase="finished", ranks=ranks("finished"))
    assert repr(Job(client(world), job_record()).logs(1)) == "digits is finished; it has written nothing."


def test_without_address_or_token_it_says_what_to_do(tmp_path):
    with pytest.raises(Unreachable, match="mlp login"):
        settings.load({"HOME": str(tmp_path)})
    with pytest.raises(Unauthorized, match="MLP_TOKEN"):
        settings.load({"HOME": str(tmp_path), "MLP_API_URL": "http://x/api/v1"})


def test_a_stored_token_is_never_sent_to_another_address(tmp_path):
    env = {"HOME": str(tmp_path)}
    settings.write_login(settings.StoredLogin("http://a/api/v1", "secret", "ann"), env)
    assert settings.load(env).token == "secret"
    with pytest.raises(Unauthorized):
        settings.load({**env, "MLP_API_URL": "http://b/api/v1"})


def test_the_token_of_the_notebook_server_serves_where_no_other_is(tmp_path):
    env = {
        "HOME": str(tmp_path),
        "MLP_API_URL": "http://x/api/v1",
        "JUPYTERHUB_API_TOKEN": "t",
        "JUPYTERHUB_USER": "bob",
    }
    assert settings.load(env) == settings.ClientSettings("http://x/api/v1", "t", "bob")
    assert "'t'" not in repr(settings.load(env))


# ------------------------------------------------------------------------ Python


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
    word = "digits run 2 still waits; this is it. To run it again, cancel it first, or give another --name\n"
    assert capsys.readouterr().err == word
    world.jobs["digits"].update(RUNNING)
    assert mlp.submit(code="3", name="digits").note.startswith("digits run 2 still runs; this is it.")
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
    assert shown.err.startswith("digits run 2 still runs; this is it.")
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


# ----------------------------------------------------------------------- command


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
    assert capsys.readouterr().out == "nap-0 is being cancelled\nnap-1 is being cancelled\n"
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

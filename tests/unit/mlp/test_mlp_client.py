"""The client against a stand-in of the service, over TCP and a UNIX socket."""

from __future__ import annotations

import pytest

from mlp.cli import main
from mlp.client import settings
from mlp.client.rest import Client
from mlp.client.transport import Address
from mlp.errors import Refused, Unauthorized, Unreachable, UsageError
from mlp.handles.job import Job
from support.clients.mlp_stand_in import RUNNING, TOKEN, StandIn, client, job_record, line, ranks


def test_a_unix_socket_is_an_address(tmp_path):
    with StandIn(socket=tmp_path / "mlp.sock") as world:
        world.jobs["digits"] = job_record()
        asked = Client(world.url, TOKEN)
        assert asked.user == "ann"
        assert asked.job("digits")["phase"] == "queued"
        assert [f["type"] for f in _frames(asked, "digits", stop="synced")][-1] == "synced"


def _frames(asked, name, stop):
    from mlp.client import follow

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
    monkeypatch.setattr("mlp.handles.job.clock_time", str)
    world.jobs["digits"] = job_record(phase="finished", ranks=ranks("finished"))
    world.attempts["digits"] = [
        {"attempt": 1, "stages": [{"stage": "first-line", "time": "2031-03-01T10:00:00Z"}]},
        {"attempt": 2, "stages": [{"stage": "started", "time": "2031-03-01T11:00:00Z"}]},
    ]
    assert repr(Job(client(world), job_record()).logs()) == (
        "digits is finished. It wrote its first line at 2031-03-01T10:00:00Z, but its log has no readable lines, perhaps after a power cut or on a full disk."
    )
    world.jobs["digits"] = job_record(phase="finished", ranks=ranks("finished"))
    assert (
        repr(Job(client(world), job_record()).logs(1))
        == "digits is finished; its rank 1 has written nothing."
    )


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

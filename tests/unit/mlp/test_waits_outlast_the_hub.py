"""Whatever waits goes on while the hub is away, says so once, and ends with its own time or with what the hub says."""

from __future__ import annotations

import asyncio
import contextlib
from types import SimpleNamespace

import pytest

from mlp import aio
from mlp.client import follow
from mlp.client.rest import Client
from mlp.errors import JobTimeout, NoHub, Refused, Unauthorized
from mlp.handles import job as handle
from mlp.handles import sweeping
from mlp.handles.job import Job
from support.clients.mlp_stand_in import FINISHED, RUNNING, TOKEN, StandIn, job_record


@pytest.fixture
def outage(monkeypatch):
    """A hub with a job that runs; `comes_back(...)` has it stopped now, and started again on its port at the fourth pause."""
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(contextlib.ExitStack())
        world = first.enter_context(StandIn())
        world.jobs["digits"] = job_record(**RUNNING)
        client = Client(world.url, TOKEN, "ann", patience=0.0)
        pauses = []

        def comes_back(job):
            first.close()

            def pause(_seconds):
                pauses.append(_seconds)
                if len(pauses) == 4:
                    again = StandIn(port=client.address.port)
                    again.jobs["digits"] = job
                    stack.enter_context(again)

            async def pause_of_loop(seconds):
                pause(seconds)

            monkeypatch.setattr(handle, "time", SimpleNamespace(sleep=pause))
            monkeypatch.setattr(aio.asyncio, "sleep", pause_of_loop)

        yield SimpleNamespace(
            client=client, world=world, comes_back=comes_back, pauses=pauses, stop=first.close
        )


def test_a_wait_continues_while_the_hub_is_away_and_reports_it_once(outage, capsys):
    job = Job(outage.client, outage.client.job("digits"))
    outage.comes_back(job_record(**FINISHED))
    assert job.wait().phase == "finished"
    said = capsys.readouterr().err
    assert said.count("MLP Hub is away") == said.count("MLP Hub answers again") == 1


def test_so_does_one_from_asyncio_and_a_result(outage, capsys):
    job = aio.AsyncJob(Job(outage.client, outage.client.job("digits")))
    outage.comes_back(job_record(**FINISHED))
    assert asyncio.run(job.result()) == {}
    assert capsys.readouterr().err.count("MLP Hub is away") == 1


def test_a_wait_with_a_time_ends_with_it_though_nobody_answers(outage):
    job = Job(outage.client, outage.client.job("digits"))
    outage.stop()
    outage.client.patience = 600.0
    with pytest.raises(JobTimeout, match="it continues"):
        job.wait(timeout=0.2)


@pytest.mark.parametrize("status", [502, 503, 504, 429, 500])
def test_a_hub_that_cannot_answer_just_now_is_waited_for(status, outage):
    job = Job(outage.client, outage.client.job("digits"))
    outage.world.jobs["digits"] = job_record(**FINISHED)
    outage.world.fail_next = [(status, {})] * 2
    assert job.wait().phase == "finished"


@pytest.mark.parametrize(("status", "error"), [(401, Unauthorized), (403, Refused), (404, NoHub)])
def test_a_permanent_error_ends_a_wait_at_once(status, error, outage):
    job = Job(outage.client, outage.client.job("digits"))
    outage.world.fail_next = [(status, {})]
    with pytest.raises(error):
        job.wait()
    assert not outage.pauses


def test_a_sweep_is_waited_for_alike(monkeypatch, capsys):
    states = iter([ConnectionRefusedError("refused"), {"state": "running"}, {"state": "finished"}])
    client = Client("http://127.0.0.1:9", TOKEN, "ann", patience=0.0)

    def once(*_):
        state = next(states)
        if isinstance(state, Exception):
            raise client.unreachable(state)
        return {"name": "search", "run": 1, "user": "ann", **state}

    monkeypatch.setattr(client, "sweep", once)
    monkeypatch.setattr(sweeping, "time", SimpleNamespace(sleep=lambda _: None))
    found = sweeping.Sweep(client, {"name": "search", "run": 1, "user": "ann", "state": "running"})
    assert found.wait().state == "finished"
    assert capsys.readouterr().err.count("MLP Hub is away") == 1


def test_a_stream_that_is_refused_because_the_hub_is_away_is_asked_for_again(outage):
    outage.world.jobs["digits"] = job_record(**FINISHED)
    outage.world.accept_streams = False
    outage.world.fail_next = [(503, {})] * 2
    found = list(follow.frames(outage.client, "digits", "ann", sleep=lambda _: None))
    assert [f["type"] for f in found].count("lost") == 1
    assert found[-1]["type"] == "end"

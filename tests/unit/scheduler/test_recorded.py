"""What a hub holds, as a scenario: lengths that are guessed, runs that go on, changes, and two runs beside each other."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.scheduler.model.types import CapacityWindow, PendingWorkload, Snapshot
from mlp_hub.simulate.compare import Lives, figures, moves
from mlp_hub.simulate.continued import Continued
from mlp_hub.simulate.engine import Simulation
from mlp_hub.simulate.recorded import (
    DEFAULT_LENGTH_S,
    Lengths,
    RecordedJob,
    Recording,
    changed_recording,
    present_of,
    remarks,
    stem_of,
)
from mlp_hub.simulate.recorded_file import document_of, from_its_first_job, notes_of, shown_as
from mlp_hub.simulate.scenario_reader import read
from support.scheduler.scheduler_builders import job, node, runs, snapshot, tenant

NONE = Lengths(())


def recorded(s: Snapshot, now: float = 0.0, lengths: Lengths = NONE) -> Recording:
    return present_of(s, now, lengths, {})


def played(recording: Recording) -> list[dict[str, Any]]:
    return [line for line in Continued(recording).lines() if "summary" not in line]


def starts(recording: Recording) -> dict[str, float]:
    return {line["job"]: line["t"] for line in played(recording) if line["event"] == "started"}


@pytest.mark.parametrize(
    ("name", "stem"),
    [("digits-12", "digits"), ("mpi-2026-11-21-3", "mpi"), ("lstm", "lstm"), ("2-3", "2-3")],
)
def test_names_that_differ_by_number_or_date_are_alike(name: str, stem: str) -> None:
    assert stem_of(name) == stem


def test_a_length_is_told_by_limit_then_by_ones_own_jobs_then_by_anybodys_then_by_default() -> None:
    lengths = Lengths(
        [("ann", "a-1", 10.0), ("ann", "a-2", 30.0), ("ann", "a-3", 20.0), ("bob", "a-9", 500.0)]
    )
    assert lengths.length_of("ann", "a-7", 99.0) == (99.0, "limit")
    assert lengths.length_of("ann", "a-7", None) == (20.0, "like")
    assert lengths.length_of("bob", "a", None) == (500.0, "like")
    assert lengths.length_of("eve", "a", None) == (25.0, "like")
    assert lengths.length_of("eve", "b", None) == (DEFAULT_LENGTH_S, "default")


def test_running_jobs_stay_in_place_and_end_when_they_are_due() -> None:
    busy = runs(job("busy", workers=4, time_limit=100.0), "n-1", "n-1", "n-1", "n-1", since=40.0)
    s = snapshot(job("next", workers=4, time_limit=50.0), nodes=(node("n-1"),), running=(busy,))
    lines = played(recorded(s, now=60.0))
    placed = next(line for line in lines if line["event"] == "started")
    assert placed == {
        "t": 0.0, "event": "started", "job": "ann/busy", "placement": dict.fromkeys("0123", "n-1")
    }  # fmt: skip
    told = {(line["job"], line["event"]): line["t"] for line in lines}
    assert told["ann/busy", "finished"] == 80.0
    assert told["ann/next", "started"] == 80.0


def test_a_job_that_has_outlived_its_guess_is_half_through() -> None:
    s = snapshot(running=(runs(job("busy", workers=4), "n", "n", "n", "n"),))
    (found,) = recorded(s, now=5000.0).jobs
    assert (found.started, found.length) == (-5000.0, 10_000.0)


def test_a_waiting_job_keeps_its_age() -> None:
    old = job("old", workers=4, priority=50, at=-40_000.0)
    new = job("new", workers=4, priority=100, at=-1.0)
    busy = runs(job("busy", workers=4, time_limit=10.0, preemptible=False), "n", "n", "n", "n")
    found = starts(recorded(snapshot(new, old, running=(busy,))))
    assert found["ann/old"] < found["ann/new"]


def test_a_preempted_waiting_job_keeps_its_age_and_shows_the_start_of_its_current_wait() -> None:
    old = job("old", workers=4, at=-400.0, requeued_at=-15.0)
    found = recorded(snapshot(old), now=0.0)
    (one,) = found.jobs
    assert (one.submitted, one.since) == (-400.0, -15.0)
    (note,) = notes_of(found, 1_900_051_200.0)
    assert note == "waits since 2030-03-18 07:59:45 UTC; runs 60 min, by a guess"


def test_resources_held_by_a_notebook_stay_held() -> None:
    used = node(cpu=1).capacity
    s = snapshot(job("a", workers=4), nodes=(node(used=used),), tenants=(tenant(used=used),))
    assert starts(recorded(s)) == {}
    (shrunk,) = document_of(recorded(s))["nodes"]
    assert shrunk["cpu"] == 3


def test_a_job_whose_node_leaves_is_queued_again_with_the_work_saved_in_its_checkpoints() -> None:
    kept = job("kept", workers=2, time_limit=100.0, checkpoint_every=30.0)
    s = snapshot(
        nodes=(node("n-1"), node("n-2")),
        running=(runs(kept, "n-1", "n-1"), runs(job("other", time_limit=100.0), "n-2")),
    )
    recording = recorded(s, now=70.0)
    for change in ({"removed": ("n-1",)}, {"down": ("n-1",)}):
        gone = changed_recording(recording, **change)
        evicted, other = gone.jobs
        assert (evicted.started, evicted.placement, evicted.length) == (None, (), 40.0)
        assert other.placement == ("n-2",)
        assert starts(gone)["ann/kept"] == 0.0


def test_a_parameter_server_is_one_more_rank() -> None:
    assert starts(recorded(snapshot(job("a", workers=4, ps=1)))) == {}
    assert starts(recorded(snapshot(job("a", workers=3, ps=1)))) == {"ann/a": 0.0}


def test_the_file_of_a_recording_is_a_scenario_that_runs_alike() -> None:
    busy = runs(job("busy", workers=4, time_limit=100.0), "n", "n", "n", "n", since=0.0)
    waiting = job("next", workers=2, time_limit=50.0, topology="required:rack", at=10.0)
    nodes = (node(labels={"rack": "r1"}), node("away", up=False))
    s = snapshot(waiting, nodes=nodes, tenants=(tenant(cpu=8),), running=(busy,))
    recording = recorded(s, now=60.0)
    scenario = read(json.dumps(document_of(recording)))
    lines = list(Simulation(scenario).lines())
    began = {x["job"]: x["t"] for x in lines if x.get("event") == "started"}
    assert began == {"ann/busy": 0.0, "ann/next": 40.0}
    assert any("time limit" in said for said in map(str, remarks(recording)))


def test_a_recording_survives_the_way_to_another_process() -> None:
    busy = runs(job("busy", workers=2), "n", "n")
    recording = recorded(snapshot(job("a", gpu=1), running=(busy,)))
    assert msgspec.json.decode(msgspec.json.encode(recording), type=Recording) == recording


def test_two_runs_are_compared_by_tenant_and_by_start() -> None:
    first = job("first", workers=4, time_limit=100.0)
    second = job("second", workers=4, time_limit=100.0, tenant="blue", at=1.0)
    s = snapshot(first, second, tenants=(tenant("red"), tenant("blue", weight=3.0)))
    before = recorded(s, now=10.0)
    after = changed_recording(before, added=(node("more"),))
    sides = []
    for recording in (before, after):
        run = Continued(recording)
        lives = Lives(run.scenario)
        summary: dict[str, Any] = {}
        for line in run.lines():
            summary = line.get("summary", summary)
            lives.add_line(line)
        sides.append((lives, figures(lives.of.values(), summary, {"red": 1.0, "blue": 3.0})))
    (was, told), (now, better) = sides
    assert (told["avg_wait_s"], better["avg_wait_s"]) == (50.0, 0.0)
    assert (told["per_tenant"]["blue"]["share"], told["per_tenant"]["blue"]["fair_share"]) == (0.5, 0.75)
    # blue took 200 s of 100 s on three quarters, then 100 s
    assert (told["ftf_worst"], better["ftf_worst"]) == (1.5, 0.75)
    most, counts = moves(was.of, now.of)
    assert counts == {"earlier": 1, "later": 0, "unmoved": 1, "only_before": 0, "only_after": 0}
    assert (most[0]["before_s"], most[0]["after_s"]) == (100.0, 0.0)


def test_booked_windows_count_from_now_on_and_are_written_down() -> None:
    booked = CapacityWindow("t", 30.0, 90.0, Quota(cpu=4000), "demo")
    waits = job("next", workers=4, time_limit=50.0, tenant="other")
    s = snapshot(waits, nodes=(node("n-1"),), tenants=(tenant("t"), tenant("other")))
    assert starts(recorded(s, now=10.0)) == {"ann/next": 0.0}
    kept = recorded(replace(s, bookings=(booked,)), now=10.0)
    assert starts(kept) == {"ann/next": 80.0}, "it would still run when the window opens, in 20 s"
    opened = recorded(replace(s, bookings=(booked,)), now=40.0)
    assert starts(opened) == {"ann/next": 50.0}
    written = document_of(opened)["bookings"]
    assert written == [{"tenant": "t", "from": 0.0, "until": 50.0, "amount": {"cpu": 4.0}}]
    assert read(json.dumps(document_of(opened))).bookings[0].amount == Quota(cpu=4000)


def test_an_export_has_readable_times_and_the_basis_of_each_jobs_length() -> None:
    begin = 1_900_051_200.0  # 2030-03-18 08:00 UTC
    base = {"user": "ann", "tenant": "red", "per_worker": Resources(1000, 0, 100), "told_by": "limit"}
    runs = RecordedJob("r", submitted=-100.0, length=900.5, started=-60.25, placement=("n",), **base)
    waits = RecordedJob("w", submitted=-30.123, length=12.345, time_limit=12.345, **base)
    now = Recording(True, (node(cpu=4),), (tenant("red"),), (waits, runs))
    assert [(j["name"], j["submit"], j["duration"]) for j in document_of(now)["jobs"]] == [
        ("ann/r", 0, 840),
        ("ann/w", 0.001, 12.3),
    ]
    assert notes_of(now, begin) == [
        "runs since 2030-03-18 07:58:59 UTC; the 14 min that are left of it, by its time limit",
        "waits since 2030-03-18 07:59:29 UTC; runs 12 s, by its time limit",
    ]
    ended = RecordedJob("e", submitted=574_123.4, length=3723.7, waited=75.0, **{**base, "told_by": "record"})
    past, later = from_its_first_job(Recording(False, (node(cpu=4),), (tenant("red"),), (ended,)))
    assert later == 574_123.4
    (job,) = document_of(past)["jobs"]
    assert (job["submit"], job["duration"]) == (0, 3724)
    assert notes_of(past, begin + later) == ["submitted 2030-03-24 23:28:43 UTC, waited 75 s"]
    again = replace(past, jobs=(replace(past.jobs[0], attempts=2),))
    assert notes_of(again, begin + later) == [
        "submitted 2030-03-24 23:28:43 UTC, waited 75 s, ran 62.1 min in 2 attempts"
    ]
    elastic = replace(past, jobs=(replace(past.jobs[0], ran=7450.0, told_by="workers"),))
    assert notes_of(elastic, begin + later)[0] == (
        "submitted 2030-03-24 23:28:43 UTC, waited 75 s, ran 2.1 h: the work of 62.1 min with all its workers"
    )
    unknown = replace(past, jobs=(replace(past.jobs[0], ran=3725.0, told_by="widest"),))
    assert (
        "1 elastic job counts with its maximum of workers all the time, because the actual number is not known."
    ) in map(str, remarks(unknown))
    several = (
        "1 job ran in several attempts. Its run time is the sum of all attempts, including repeated work."
    )
    assert several in map(str, remarks(again))
    assert several not in map(str, remarks(past))
    assert "`--export now` includes them" in str(shown_as(past)[0])
    assert "they come first, at second 0, with their remaining run time" in str(shown_as(now)[0])
    assert not [said for said in shown_as(now) if "notebook" in str(said)]


def test_an_export_writes_whole_amounts_as_people_do_and_says_what_notebooks_hold() -> None:
    base = {"user": "ann", "tenant": "red", "submitted": -1.0, "length": 9.0}
    jobs = (
        RecordedJob("a", per_worker=Resources(2000, 1000, 100), **base),
        RecordedJob("b", per_worker=Resources(500, 0, 100), **base),
    )
    red = tenant("red", cpu=3, used=Resources(200, 0, 1024))
    document = document_of(now := Recording(True, (node(cpu=4),), (red,), jobs))
    texts = json.dumps(document["jobs"] + document["nodes"] + document["tenants"])
    assert '"cpu": 2, ' in texts
    assert '"gpu": 1, ' in texts
    assert '"cpu": 0.5, ' in texts
    assert '"cpu": 4, ' in texts
    assert '{"cpu": 2.8}' in texts
    assert str(shown_as(now)[-1]) == (
        "The nodes and quotas below are reduced for good by the present use of notebook servers."
    )


# ----------------------------------------------------- a notebook server that waits


def asks(uid: str = "sp/bob/gpu", at: float = -10.0) -> PendingWorkload:
    """A request of a notebook server, as a hub's snapshot has it."""
    made = job(uid, at=at, user="bob", kind="server", goes_first=True, gives_way=False, preemptible=False)
    return replace(made, name="notebook")


def test_a_waiting_server_is_simulated_ahead_of_its_tenants_jobs_with_a_remark() -> None:
    waiting = (job("digits", at=-500.0, user="bob"), asks())
    recording = recorded(
        snapshot(*waiting, nodes=(node(cpu=1),)), lengths=Lengths([("bob", "notebook", 5.0)])
    )
    assert starts(recording) == {"bob/notebook server gpu": 0.0, "bob/digits": DEFAULT_LENGTH_S}
    said = "1 waiting notebook server counts as if it held its resources for 60 min."
    assert said in map(str, remarks(recording))


def test_a_server_that_waits_is_stopped_for_nobody() -> None:
    urgent = job("urgent", at=0.0, user="ann", priority=200, tenant="blue")
    s = snapshot(
        asks(), urgent, nodes=(node(cpu=1),), tenants=(tenant(), tenant("blue")), name="priority", aging_s=0.0
    )
    first = changed_recording(recorded(s))
    assert starts(first)["ann/urgent"] == 0.0
    alone = replace(
        first, jobs=tuple(replace(j, submitted=60.0) if j.name == "urgent" else j for j in first.jobs)
    )
    assert starts(alone) == {"bob/notebook server gpu": 0.0, "ann/urgent": DEFAULT_LENGTH_S}


def test_a_server_that_waits_is_a_line_of_the_file_that_is_not_stopped() -> None:
    recording = recorded(snapshot(asks("sp/bob/"), job("digits", at=-500.0, user="bob")))
    lines = {line["name"]: line for line in document_of(recording)["jobs"]}
    assert lines["bob/notebook server"]["preemptible"] is False
    assert "preemptible" not in lines["bob/digits"]
    read(json.dumps(document_of(recording)))

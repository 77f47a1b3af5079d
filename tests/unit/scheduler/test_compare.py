"""Two runs beside each other: of which jobs the waits are, and what a job waits for whose start moves."""

from __future__ import annotations

from typing import Any

from mlp_hub.simulate.compare import Life, Lives, figures, moves
from mlp_hub.simulate.engine import Simulation
from mlp_hub.simulate.scenario_reader import read_value

Json = dict[str, Any]


def lives(ran: dict[str, float], *lines: Json) -> dict[str, Life]:
    names = list(dict.fromkeys(line["job"] for line in lines))
    scenario = read_value(
        {
            "version": 1,
            "nodes": [{"name": "n", "cpu": 8}],
            "tenants": [{"name": "red"}],
            "jobs": [{"name": name, "tenant": "red", "user": name.partition("/")[0]} for name in names],
        }
    )
    found = Lives(scenario, ran)
    for line in lines:
        found.add_line(line)
    return found.of


def line(t: float, event: str, job: str, **more: Any) -> Json:
    return {"t": t, "event": event, "job": job, **more}


def counted(of: dict[str, Life]) -> Json:
    used = {"per_tenant": {"red": {"cpu_s": 1.0, "gpu_s": 0.0}}}
    rest = {"makespan_s": 45, "utilization": {}, "lost_work_s": 0}
    return figures(of.values(), {**used, **rest}, {"red": 1.0})


def test_a_job_has_waited_each_time_that_it_was_in_the_queue() -> None:
    of = lives(
        {},
        line(0, "submitted", "low"),
        line(4, "started", "low"),
        line(10, "preempted", "low"),
        line(45, "started", "low"),
        line(60, "finished", "low"),
    )
    told = counted(of)
    assert (told["waits_of"], told["avg_wait_s"], told["waited_again_s"]) == (1, 39.0, 35.0)


def test_an_already_running_job_has_no_initial_wait_and_its_wait_after_a_stop_counts_separately() -> None:
    of = lives(
        {"old": -50.0},
        line(0, "submitted", "old"),
        line(0, "started", "old"),
        line(0, "submitted", "new"),
        line(10, "preempted", "old"),
        line(10, "started", "new"),
        line(40, "finished", "new"),
        line(45, "started", "old"),
    )
    told = counted(of)
    assert (told["jobs"], told["running"], told["waits_of"]) == (2, 1, 1)
    assert (told["avg_wait_s"], told["waited_again_s"], told["preemptions"]) == (10.0, 35.0, 1)


def test_a_job_that_the_simulated_change_takes_off_its_node_waits_again_from_the_start() -> None:
    of = lives({"old": -50.0}, line(0, "submitted", "old"), line(30, "started", "old"))
    assert (of["old"].began_running, of["old"].again) == (True, 30)


def test_a_start_that_moves_has_the_reason_of_the_run_in_which_it_is_later() -> None:
    soon = lives({}, line(0, "submitted", "a"), line(0, "started", "a"))
    late = lives(
        {},
        line(0, "submitted", "a"),
        line(0, "waiting", "a", reason="WaitingForQuota", message="red may use 2 by job a-1 of ann"),
        line(60, "started", "a"),
        line(70, "waiting", "a", reason="WaitingForResources", message="after a stop"),
    )
    said = "red may use 2 by job a-1 of ann"
    never = lives({}, line(0, "submitted", "a"), line(0, "refused", "a", message="too much"))
    for before, after, why in (
        (soon, late, said),
        (late, soon, said),
        (soon, never, "too much"),
    ):
        (move,), _ = moves(before, after)
        assert move["why"] == why


def test_a_run_says_why_each_job_waited() -> None:
    value = {
        "version": 1,
        "nodes": [{"name": "n", "cpu": 4}],
        "tenants": [{"name": "red", "quota": {"cpu": 2}}],
        "jobs": [{"name": "j", "tenant": "red", "cpu": 2, "count": 2, "duration": 10}],
    }
    simulation = Simulation(read_value(value))
    found = Lives(simulation.scenario)
    for each in simulation.lines():
        if "summary" not in each:
            found.add_line(each)
    assert [life.waits for life in found.of.values()] == [
        None,
        "Needs 2 cpu, 0 free. Starts when jobs of red end.",
    ]


def test_reasons_of_waits_count_each_job_once_and_only_jobs_counted_in_the_waits() -> None:
    of = lives(
        {"old": -50.0},
        line(0, "submitted", "old"),
        line(0, "started", "old"),
        line(5, "preempted", "old"),
        line(5, "waiting", "old", reason="WaitingForQuota", message="red may use 4"),
        *(line(0, "submitted", name) for name in ("ann/a", "ann/b", "ann/c", "ann/d")),
        line(0, "waiting", "ann/a", reason="WaitingForQuota", message="red may use 4"),
        line(9, "waiting", "ann/a", reason="WaitingForResources", message="b of ann has the node"),
        line(20, "started", "ann/a"),
        line(30, "waiting", "ann/a", reason="Reserved", message="after its start"),
        line(0, "waiting", "ann/b", reason="WaitingForResources", message="2 are free"),
        line(8, "started", "ann/b"),
        line(0, "waiting", "ann/c", reason="Reserved", message="kept for blue"),
        line(0, "started", "ann/d"),
    )
    zero = {"per_tenant": {"red": {"cpu_s": 1.0, "gpu_s": 0.0}}, "makespan_s": 45, "utilization": {}}
    told = figures(of.values(), zero | {"lost_work_s": 0}, {"red": 1.0})
    assert told["waits"] == [
        {
            "reason": "WaitingForResources",
            "jobs": 2,
            "never": 0,
            "job": "a",
            "user": "ann",
            "message": "b of ann has the node",
        },
        {
            "reason": "Reserved",
            "jobs": 1,
            "never": 1,
            "job": "c",
            "user": "ann",
            "message": "kept for blue",
        },
    ]
    assert (told["waits_of"], told["never_started"]) == (3, 1), "two of them waited, one started at once"

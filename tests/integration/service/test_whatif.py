"""What-if on a real platform: the present, the past, scenarios, limits; the hub itself is left alone."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mlp_api.platform.whatif import Simulated, SimulateRequest, WhatIfHistory, WhatIfWindow
from mlp_api.types import TenantCreate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.service.support.limits import ServiceLimits
from mlp_hub.service.whatif import worker
from mlp_hub.service.whatif.service import WhatIf
from mlp_hub.service.whatif.task import Task, WhatIfOutcome
from support.rigs.asking import refusal
from support.rigs.platform_rig import Rig, node, running_rig
from support.waiting import until


def asked(**body: Any) -> SimulateRequest:
    return msgspec.convert(body, SimulateRequest)


async def busy(rig: Rig) -> None:
    """Four cores: two jobs of two hold them for ten minutes, three more wait; red may use two."""
    await rig.platform.tenants.create(TenantCreate(name="red", cpu=2))
    await rig.platform.tenants.set_member("red", "bob", "member")
    for n, (user, tenant) in enumerate([("ann", "default"), ("bob", "red")]):
        await rig.submit(f"runs-{n}", user, tenant=tenant, cpu=2.0, time_limit=600, sim={"DURATION": 600})
        await rig.until(f"runs-{n}", "running", user=user)
    for n in range(3):
        await rig.submit(f"waits-{n}", "bob", tenant="red", cpu=2.0, time_limit=300, sim={"DURATION": 1})


async def test_more_quota_and_nodes_start_waiting_jobs_earlier_and_nothing_changes_in_the_hub(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, node("n1", 4)) as rig:
        await busy(rig)
        queue = await rig.platform.cluster_queue.entries()
        changes = {"tenants": {"red": {"cpu": 8}}, "new_nodes": [{"name": "new", "count": 2, "cpu": 4}]}
        question = asked(**{"from": "now", "changes": changes})
        found = await rig.platform.whatif.simulate("admin", question, chart=True, lines=True)
        before, after, moves = found.before, found.after, found.moves
        assert before is not None
        assert moves is not None
        assert before.per_tenant["red"].avg_wait_s > 500
        assert after.per_tenant["red"].avg_wait_s == 0
        assert (moves.earlier, moves.later) == (3, 0)
        assert moves.most[0].job == "waits-2"
        assert moves.most[0].after_s == 0
        assert moves.most[0].why == "Needs 2 cpu, 0 free. Starts when jobs of red end."
        assert (before.jobs, before.running, before.waits_of) == (5, 2, 3)
        assert (after.per_tenant["red"].running, after.per_tenant["red"].waits_of) == (1, 3)
        assert (before.gantt or "").startswith("<svg")
        assert found.lines
        assert any("time limit" in str(r) for r in found.remarks)
        now = await rig.platform.cluster_queue.entries()
        assert sorted((e.name, e.phase) for e in now) == sorted((e.name, e.phase) for e in queue)
        as_it_is = await rig.platform.whatif.simulate("admin", asked(**{"from": "now"}))
        assert as_it_is.moves is not None
        assert (as_it_is.moves.earlier, as_it_is.moves.later) == (0, 0)


async def test_a_node_that_goes_down_lets_its_jobs_wait_again(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node("n1", 4)) as rig:
        await busy(rig)
        changes = {"nodes_down": ["n1"]}
        found = await rig.platform.whatif.simulate("admin", asked(**{"from": "now", "changes": changes}))
        assert found.after.never_started == 5
        spare = {"nodes_down": ["n1"], "new_nodes": [{"name": "n2", "cpu": 4}]}
        moved = await rig.platform.whatif.simulate("admin", asked(**{"from": "now", "changes": spare}))
        assert moved.before is not None
        # of the same jobs on both sides: who loses its node has had its wait
        assert (moved.after.running, moved.after.waits_of) == (moved.before.running, moved.before.waits_of)
        assert (moved.before.waited_again_s, moved.after.waited_again_s) == (0, 0)
        assert any("lose their nodes" in str(r) for r in found.remarks)


async def test_history_is_run_again_beside_what_really_happened(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node("n1", 4)) as rig:
        for n in range(4):
            await rig.submit(f"was-{n}", cpu=4.0, sim={"DURATION": 0.2})
        for n in range(4):
            await rig.until(f"was-{n}", "finished")
        since = (datetime.now(UTC) - timedelta(days=1)).isoformat()
        question = {"from": {"history": {"since": since}}}
        more = {**question, "changes": {"new_nodes": [{"name": "more", "count": 3, "cpu": 4}]}}
        found = await rig.platform.whatif.simulate("admin", asked(**more))
        assert found.before is not None
        assert found.recorded is not None
        assert found.recorded.jobs == found.before.jobs == found.before.finished == 4
        assert found.before.avg_wait_s > found.after.avg_wait_s
        later = {"from": {"history": {"since": since, "until": since}}}
        with pytest.raises(Refused, match=r"history\.until is not after"):
            await rig.platform.whatif.simulate("admin", asked(**later))


async def test_an_elastic_job_of_the_past_ran_as_long_as_its_worker_seconds_take_with_all_its_workers(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, node("n1", 4)) as rig:
        await rig.submit("wide", workers="1:4", sim={"DURATION": 30.0, "STOP": 0.05})
        await rig.until("wide", "running")
        await rig.submit("other", user="bob", workers=3, sim={"DURATION": 1.0})

        async def shrunk() -> bool:
            return len((await rig.platform.jobs.get(SYSTEM, "ann", "wide")).ranks) == 1

        await until(shrunk)
        await asyncio.sleep(0.5)
        await rig.platform.jobs.cancel(SYSTEM, "ann", "wide")
        await rig.until("wide", "cancelled")
        await rig.until("other", "finished", user="bob")
        window = WhatIfHistory(history=WhatIfWindow(since=datetime.now(UTC) - timedelta(days=1)))
        _, past = await rig.platform.whatif.recording(window)
        wide = next(j for j in past.jobs if j.name == "wide")
        steps = await rig.platform.jobs.events(SYSTEM, "ann", "wide")
        begins = [e.time.timestamp() for e in steps if e.kind == "running"]
        shrinks = next(e.time.timestamp() for e in steps if e.kind == "resized")
        ends = next(e.time.timestamp() for e in steps if e.kind == "cancelled")
        four, one = shrinks - begins[0], ends - begins[1]
        assert wide.ran is not None
        assert wide.length < wide.ran
        # its part of four ranks' and of one's work is that of the timeline, whenever either was seen
        assert wide.length == pytest.approx(wide.ran * (4 * four + one) / (four + one) / 4, abs=0.002)
        found = await rig.platform.whatif.export("admin", 1.0)
        assert (
            "1 elastic job had fewer workers than its maximum for a while. Its run time counts as that of the same worker-seconds with all workers."
        ) in map(str, found["remarks"])


async def test_the_same_question_has_the_same_answer(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node("n1", 4)) as rig:
        for n in range(12):
            await rig.submit(f"j-{n}", cpu=float(n % 3 + 1), sim={"DURATION": 0.05})
        for n in range(12):
            await rig.until(f"j-{n}", "finished")
        since = (datetime.now(UTC) - timedelta(days=1)).isoformat()
        changes = {"policy": {"name": "fifo"}}
        question = asked(**{"from": {"history": {"since": since}}, "changes": changes})
        answers = [await rig.platform.whatif.simulate("admin", question, lines=True) for _ in range(2)]
        first, second = (msgspec.to_builtins(a, enc_hook=str) for a in answers)
        assert {**first, "begin": None} == {**second, "begin": None}


SCENARIO = {
    "version": 1,
    "nodes": [{"name": "n", "count": 2, "cpu": 4}],
    "tenants": [{"name": "red"}],
    "jobs": [{"name": "a", "count": 4, "cpu": 4, "duration": 10}],
}


async def test_a_scenario_is_run_as_the_command_does(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        found: Simulated = await rig.platform.whatif.simulate("admin", asked(**SCENARIO), lines=True)
        assert found.before is None
        assert found.after.makespan_s == 20
        assert found.after.avg_wait_s == 5
        assert found.lines is not None
        assert {line["event"] for line in found.lines} >= {"submitted", "started", "finished"}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "has nothing to run"),
        ({"changes": {}}, "changes need `from`"),
        ({"from": "now", "version": 1}, "version has no effect here"),
        ({**SCENARIO, "jobs": [{"name": "a", "cpu": -1}]}, "takes cores from 0 on"),
        ({**SCENARIO, "jobs": [{"name": "a", "count": 100_000}]}, "100000 jobs; the limit here is 20000"),
        ({**SCENARIO, "nodes": [{"name": "n", "count": 100_000}]}, "100000 nodes; the limit here is 10000"),
        ({"from": "now", "changes": {"tenants": {"grey": {}}}}, "there is no tenant grey"),
        ({"from": "now", "changes": {"new_tenants": {"default": {}}}}, "there is a tenant default already"),
        ({"from": "now", "changes": {"remove_nodes": ["n9"]}}, "there is no node n9"),
        ({"from": "now", "changes": {"new_nodes": [{"name": "n1"}]}}, "there is a node n1 already"),
        ({"from": "now", "changes": {"new_tenants": {"a": {"parent": "b"}}}}, "there is no tenant b"),
        (
            {"from": "now", "changes": {"new_tenants": {"a": {"cpu": 1, "lending_limit": {"cpu": 1}}}}},
            "has no meaning without a cohort",
        ),
        (
            {
                "from": "now",
                "changes": {"new_tenants": {"a": {"cpu": 1, "cohort": "c", "lending_limit": {"cpu": 2}}}},
            },
            "a cannot lend more than it has",
        ),
        (
            {"from": "now", "changes": {"new_tenants": {"a": {"cohort": "default"}}}},
            "is the name of a team",
        ),
        (
            {"from": "now", "changes": {"new_tenants": {"a": {"cohort": "c", "parent": "default"}}}},
            "name one of the two",
        ),
        (
            {"from": "now", "changes": {"new_tenants": {"a": {"parent": "b"}, "b": {"parent": "a"}}}},
            "round in a circle",
        ),
        (
            {"from": "now", "changes": {"tenants": {"default": {"reserved": {"gold": 1}}}}},
            "no dimension gold",
        ),
    ],
)
async def test_an_impossible_simulation_is_refused_with_a_valid_form(
    tmp_path: Path, body: dict[str, Any], says: str
) -> None:
    async with running_rig(tmp_path) as rig:
        with pytest.raises(Refused, match=says):
            await rig.platform.whatif.simulate("admin", asked(**body))


async def test_an_admin_has_one_run_at_a_time_and_the_service_answers_meanwhile(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        whatif = rig.platform.whatif
        run = asyncio.ensure_future(whatif.simulate("admin", asked(**SCENARIO)))
        await asyncio.sleep(0)
        with pytest.raises(Refused, match="a run of yours is in progress"):
            await whatif.simulate("admin", asked(**SCENARIO))
        await rig.submit("meanwhile", sim={"DURATION": 0})
        assert (await run).after.jobs == 4
        assert (await whatif.simulate("admin", asked(**SCENARIO))).after.jobs == 4


async def test_repeated_concurrent_exports_and_one_export_too_many_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path) as rig:
        whatif = rig.platform.whatif
        gate, begun = asyncio.Event(), 0
        read = whatif.recording

        async def slow(source: Any) -> Any:
            nonlocal begun
            begun += 1
            await gate.wait()
            return await read(source)

        async def both_began() -> bool:
            return begun == 2

        async def another_began() -> bool:
            return begun > before

        monkeypatch.setattr(whatif, "recording", slow)
        first = [asyncio.ensure_future(whatif.export(who, days)) for who, days in (("ann", None), ("bob", 7))]
        await until(both_began)
        for days in (None, 7, 3650):
            with pytest.raises(Refused, match="an export of yours is in progress"):
                await whatif.export("ann", days)
        with pytest.raises(
            Refused, match="2 other users each have an export in progress, which is the limit"
        ):
            await whatif.export("eve", None)
        assert begun == 2
        gate.set()
        await asyncio.gather(*first)
        assert (await whatif.export("ann", 7))["jobs"] == []  # a turn that is over is over
        gate.clear()
        before = begun
        hung_up = asyncio.ensure_future(whatif.export("ann", None))
        await until(another_began)
        hung_up.cancel()
        await asyncio.gather(hung_up, return_exceptions=True)
        gate.set()
        assert (await whatif.export("ann", None))["version"] == 1


async def test_a_run_that_takes_too_long_is_ended_and_refused(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        p = rig.platform
        whatif = WhatIf(p.board, p.admission, lambda: 0.0, most=ServiceLimits(what_if_s=0.01))
        with pytest.raises(Refused, match=r"takes longer than 0\.01 s"):
            await whatif.simulate("admin", asked(**SCENARIO))


async def test_an_export_is_a_scenario_that_runs(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node("n1", 4)) as rig:
        await busy(rig)
        document = await rig.platform.whatif.export("root", None)
        remarks = document.pop("remarks")
        assert str(remarks[0]).startswith("The format has no running jobs: they come first, at second 0")
        notes = document.pop("notes")
        assert [note.split()[0] for note in notes] == ["runs", "runs", "waits", "waits", "waits"]
        runtimes = {j["runtime"] for j in document["jobs"]}
        assert runtimes == {j.runtime for j in (await rig.platform.jobs.list(SYSTEM, "ann"))[0]}
        assert datetime.fromisoformat(document.pop("begin")).tzinfo is not None
        found = await rig.platform.whatif.simulate("admin", asked(**document))
        assert (found.after.jobs, found.after.finished) == (5, 5)
        past = await rig.platform.whatif.export("root", 1)
        assert "`--export now` includes them" in str(past.pop("remarks")[0])
        assert past["jobs"] == []


async def test_very_many_new_nodes_are_refused_before_they_are_made(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        many = [{"name": f"n-{i}-", "count": 10_000} for i in range(100)]
        question = asked(**{"from": "now", "changes": {"new_nodes": many}})
        with pytest.raises(Refused, match="these are 1000000 nodes; at most 10000"):
            await rig.platform.whatif.simulate("admin", question)


async def test_names_that_cannot_be_printed_and_times_that_cannot_be_written_are_refused(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path) as rig:
        for new in (
            {"name": "a\x00"},
            {"name": "a", "labels": {"\x1b[2J": "x"}},
            {"name": "a", "gpu_kind": "\n"},
        ):
            with pytest.raises(Refused, match="cannot be printed"):
                await rig.platform.whatif.simulate(
                    "admin", asked(**{"from": "now", "changes": {"new_nodes": [new]}})
                )
        begin = {"history": {"since": "0001-01-01T00:00:00+14:00"}}
        with pytest.raises(Refused, match="before 1970"):
            await rig.platform.whatif.simulate("admin", asked(**{"from": begin}))


def test_lines_of_jobs_with_very_many_ranks_are_few_and_the_rest_is_counted() -> None:
    wide = {"name": "a", "cpu": 0.001, "ram": 0, "workers": 30_000, "duration": 1, "count": 10, "every": 2}
    node_ = {"name": "n" * 200, "cpu": 1000, "ram": 10}
    scenario = {"version": 1, "nodes": [node_], "tenants": [{"name": "red"}], "jobs": [wide]}
    found = msgspec.json.decode(worker.answer(Task(scenario=scenario, lines=True)), type=WhatIfOutcome)
    told = found.answer["lines"]
    assert sum(len(line.get("placement", ())) for line in told) <= worker.MOST_RANKS
    assert [line["event"] for line in told].count("started") == 3
    assert found.answer["lines_left_out"] > 0
    assert found.answer["after"]["finished"] == 10


def test_an_answer_that_would_fill_the_service_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "MOST_ANSWER", 1000)
    scenario = {"version": 1, "nodes": [{"name": "n"}], "tenants": [{"name": "red"}], "jobs": [{"name": "a"}]}
    said = worker.answer(Task(scenario=scenario, lines=True, chart=True))
    found = msgspec.json.decode(said, type=WhatIfOutcome)
    assert len(said) < 1000
    assert "Ask without lines and chart" in (found.refused or {})["id"]


async def test_a_notebook_server_that_waits_takes_part(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node("n1", 4)) as rig:
        await busy(rig)
        refused = await refusal(rig, user="bob", tenant="red", cpu=2)
        assert refused.reason is Reason.WAITING_FOR_QUOTA
        changes = {"tenants": {"red": {"cpu": 4}}, "new_nodes": [{"name": "new", "cpu": 4}]}
        question = asked(**{"from": "now", "changes": changes})
        found = await rig.platform.whatif.simulate("admin", question)
        assert found.before is not None
        assert (found.before.jobs, found.before.waits_of) == (6, 4)
        assert found.moves is not None
        assert found.moves.earlier == 4
        server = next(m for m in found.moves.most if m.job == "notebook server")
        assert (server.user, server.after_s) == ("bob", 0)
        assert any("waiting notebook server counts" in str(r) for r in found.remarks)
        (asks,) = [e for e in await rig.platform.cluster_queue.entries("red") if e.kind == "server"]
        assert asks.phase == "queued"

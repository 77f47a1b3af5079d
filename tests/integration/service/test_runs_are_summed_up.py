"""What a run was is kept when it is submitted; what became of it is summed up, exactly, whoever is killed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mlp_api.jobs.jobs import Provenance, Resubmit
from mlp_api.jobs.metrics import MetricBatch, MetricPoint
from mlp_api.jobs.runs import ListedRun, RunsAct, RunUpdate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from support.rigs.platform_rig import Rig, running_rig
from support.waiting import until

LONG, SHORT = {"DURATION": 600}, {"DURATION": 0.05}
EVERY_CORE = 4.0


async def report(rig: Rig, name: str, *losses: float, first: int = 1) -> None:
    points = [MetricPoint(n=n, t=float(n), v={"loss": v, "step": n}) for n, v in enumerate(losses, first)]
    await rig.platform.metrics.append(SYSTEM, "ann", name, MetricBatch(source="0.0.a", points=points))


async def summed(rig: Rig, name: str, last: float | None, *, ended: bool = False) -> ListedRun:
    """Return the run once its last loss is so."""

    async def look() -> ListedRun | None:
        run = (await rig.platform.runs.get(SYSTEM, "ann", name)).run
        metric = run.metrics.get("loss")
        final = rig.db.read_now(lambda tx: tx.runs.summary(run.uid)).final
        return run if metric is not None and metric.last == last and final is ended else None

    found: ListedRun = await until(look, what=f"the last loss of {name} to be {last}")
    return found


async def test_a_run_is_summed_up_while_it_runs_and_for_good_when_it_ends(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        job = await rig.submit("digits", sim=LONG, params={"lr": 0.1})
        await rig.until("digits", "running")
        await report(rig, "digits", 3.0, 1.0, 2.0)
        run = await summed(rig, "digits", 2.0)
        assert (run.metrics["loss"].best, run.metrics["loss"].high) == (1.0, 3.0)
        assert run.params == {"lr": 0.1}
        await report(rig, "digits", 0.5, first=4)
        rig.end(job)
        await rig.until("digits", "finished")
        run = await summed(rig, "digits", 0.5, ended=True)
        assert run.metrics["loss"].best == 0.5
        assert run.duration_s is not None
        assert run.core_hours == pytest.approx(run.duration_s * job.cpu / 3600, abs=1e-6)  # of the exact span
        await rig.platform.metrics.delete(SYSTEM, "ann", "digits")
        assert (await rig.platform.runs.get(SYSTEM, "ann", "digits")).run.metrics == {}


async def test_a_service_killed_in_between_counts_each_point_exactly_once(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        job = await rig.submit("digits", sim=LONG)
        await rig.until("digits", "running")
        await report(rig, "digits", 3.0)
        await summed(rig, "digits", 3.0)
        await rig.platform.summaries.stop()
        await report(rig, "digits", 0.25, 2.0, first=2)
        rig.end(job)
        await rig.until("digits", "finished")
        rig.crash()
        await rig.start()
        run = await summed(rig, "digits", 2.0, ended=True)
        assert run.metrics["loss"].best == 0.25


async def test_a_run_keeps_its_script_variables_environment_and_commit(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path) as rig:
        home = rig.directories.homes / "ann"
        home.mkdir(parents=True)
        (home / "train.py").write_text("print(1)\n")
        said = Provenance(commit="a" * 40, dirty=True, environment="numpy==2.0\ntorch==2.9\n")
        variables = json.dumps({"lr": 0.5, "sizes": [1, 2]})
        await rig.submit(
            "digits", sim={"DURATION": 0.05, "X": 1}, code=None, entry="train.py", args=["--epochs", "5"],
            params={"deep": True}, provenance=said,
        )  # fmt: skip
        await rig.until("digits", "finished")
        found = await rig.platform.runs.get(SYSTEM, "ann", "digits")
        assert (found.program, found.entry, found.args) == ("print(1)\n", "train.py", ["--epochs", "5"])
        assert (found.environment, found.run.commit, found.run.dirty) == (said.environment, "a" * 40, True)
        assert found.run.params == {"deep": True}
        await rig.submit("cell", sim={"DURATION": 0.05}, env={"NOTEBOOK_VARIABLES": variables})
        cell = await rig.platform.runs.get(SYSTEM, "ann", "cell")
        assert (cell.program, cell.run.params, cell.run.commit) == ("x", {"lr": 0.5}, None)


async def test_a_script_that_was_edited_while_its_job_waited_is_kept_as_it_started(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        home = rig.directories.homes / "ann"
        home.mkdir(parents=True)
        (home / "train.py").write_text("print(1)\n")
        before = await rig.submit("before", sim=LONG, cpu=EVERY_CORE)
        await rig.until("before", "running")
        said = Provenance(environment="numpy==2.0\n")
        await rig.submit("digits", sim=SHORT, cpu=EVERY_CORE, code=None, entry="train.py", provenance=said)
        (home / "train.py").write_text("print(2)\n")
        rig.end(before)
        await rig.until("digits", "finished")
        found = await rig.platform.runs.get(SYSTEM, "ann", "digits")
        assert (found.program, found.environment) == ("print(2)\n", "numpy==2.0\n")
        timeline = await rig.platform.jobs.events(SYSTEM, "ann", "digits")
        said_of = [str(event.message) for event in timeline if event.kind == "program-changed"]
        assert said_of == ["train.py has changed since the job was submitted; it starts as it is now"]
        again = await rig.platform.jobs.resubmit(
            SYSTEM, "ann", "digits", Resubmit(exactly=True, provenance=said)
        )
        assert again.run == 2
        await rig.until("digits", "finished")
        timeline = await rig.platform.jobs.events(SYSTEM, "ann", "digits")
        assert "program-changed" not in [event.kind for event in timeline]


async def test_exactly_the_same_runs_again_and_what_is_other_is_told(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        jobs = rig.platform.jobs
        home = rig.directories.homes / "ann"
        home.mkdir(parents=True)
        (home / "train.py").write_text("print(1)\n")
        said = Provenance(environment="numpy==2.0\ntorch==2.9\n")
        short = {"SIM_DURATION": "0.05"}
        await rig.submit("digits", env=short, code=None, entry="train.py", provenance=said)
        await rig.until("digits", "finished")

        async def refused(changes: Resubmit) -> Refused:
            with pytest.raises(Refused) as caught:
                await jobs.resubmit(SYSTEM, "ann", "digits@1", changes)
            return caught.value

        both = await refused(Resubmit(exactly=True, cpu=2.0))
        assert (both.reason, "leave out exactly" in both.msg) == (Reason.INVALID, True)
        other = await refused(
            Resubmit(exactly=True, provenance=Provenance(environment="numpy==2.1\ntorch==2.9\n"))
        )
        assert other.reason is Reason.CONFLICT
        assert "-numpy==2.0, +numpy==2.1" in other.msg
        assert (
            await jobs.resubmit(SYSTEM, "ann", "digits@1", Resubmit(exactly=True, provenance=said))
        ).run == 2
        await rig.until("digits", "finished")
        (home / "train.py").write_text("print(2)\n")
        assert "train.py has changed since digits ran" in (await refused(Resubmit(exactly=True))).msg
        again = await jobs.resubmit(SYSTEM, "ann", "digits@1", Resubmit(params={"lr": 0.2}, args=["--fast"]))
        assert (again.params, again.args) == ({"lr": 0.2}, ["--fast"])


async def test_another_value_of_a_notebooks_variable_becomes_that_variable(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        env = {"NOTEBOOK_VARIABLES": '{"lr":0.5,"sizes":[1,2]}', "SIM_DURATION": "0.05"}
        await rig.submit("cell", env=env, params={"deep": True})
        await rig.until("cell", "finished")
        again = await rig.platform.jobs.resubmit(
            SYSTEM, "ann", "cell", Resubmit(params={"lr": 0.1, "deep": False})
        )
        assert json.loads(again.env["NOTEBOOK_VARIABLES"]) == {"lr": 0.1, "sizes": [1, 2]}
        assert again.params == {"deep": False}
        found = await rig.platform.runs.search(SYSTEM, user="ann", search="lr<0.2")
        assert [(r.name, r.run) for r in found.runs] == [("cell", 2)]


async def test_many_runs_are_tagged_cancelled_and_deleted_each_with_its_answer(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        runs = rig.platform.runs
        for name in ("a", "b"):
            await rig.submit(name, sim=LONG)
        told = await runs.act(SYSTEM, "ann", RunsAct(act="tag", runs=["a", "b", "c"], tags=["keep", "new"]))
        assert [(one.run, one.reason) for one in told] == [("a", ""), ("b", ""), ("c", "NotFound")]
        await runs.act(SYSTEM, "ann", RunsAct(act="untag", runs=["b"], tags=["new"]))
        assert [r.tags for r in (await runs.search(SYSTEM, user="ann", sort="name")).runs] == [
            ["keep", "new"],
            ["keep"],
        ]
        await runs.update(SYSTEM, "ann", "a", RunUpdate(note="the first"), actor="ann")
        full = await runs.act(
            SYSTEM, "ann", RunsAct(act="tag", runs=["a"], tags=[f"t{n}" for n in range(19)])
        )
        assert full[0].reason == "Invalid"
        told = await runs.act(SYSTEM, "ann", RunsAct(act="cancel", runs=["a", "a", "b"]))
        assert [one.reason for one in told] == ["", ""]
        await rig.until("a", "cancelled")
        told = await runs.act(SYSTEM, "ann", RunsAct(act="delete", runs=["a", "nobody"]))
        assert [one.reason for one in told] == ["", "NotFound"]
        with pytest.raises(Refused, match="which tags"):
            await runs.act(SYSTEM, "ann", RunsAct(act="tag", runs=["b"]))

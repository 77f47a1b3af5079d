"""Jobs that people make with kubectl wait for their turn like all others: held, counted, let run, stopped and ended, with real pods."""

from __future__ import annotations

import asyncio
import textwrap
from pathlib import Path
from typing import Any

import yaml

from mlp_api.jobs.jobs import JobCreate
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.kubernetes.kinds import JOBS, MPI_JOBS, PYTORCH_JOBS, TF_JOBS, Kind
from support.cluster.brought_rig import IMAGE, running_rig
from support.cluster.kube import Kube
from support.cluster.pods import asked
from support.waiting import until

EXAMPLES = Path(__file__).parent / "jobs"
LASTS = "import time\nprint('began', flush=True)\ntime.sleep(600)"


def job(name: str, program: str, *, cpu: str = "300m", kind: Kind = JOBS) -> dict[str, Any]:
    """Return a job of one rank that runs a program."""
    resources = {"requests": {"cpu": cpu, "memory": "64Mi"}, "limits": {"memory": "64Mi"}}
    container = {
        "image": IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-c", program],
        "resources": resources,
    }
    return asked(kind, "red", name=name, container=container)


def example(file: str) -> dict[str, Any]:
    """Return a job of an operator as ann brings it."""
    found: dict[str, Any] = yaml.safe_load((EXAMPLES / file).read_text())
    found["metadata"] |= {"labels": {"mlp-hub/queue": "red"}, "annotations": {"mlp-hub/user": "ann"}}
    spec = found["spec"]
    spec["runPolicy"] = {**spec["runPolicy"], "suspend": True, "cleanPodPolicy": "Running"}
    for replicas in (spec.get("mpiReplicaSpecs") or spec["tfReplicaSpecs"]).values():
        for container in replicas["template"]["spec"]["containers"]:
            container["resources"] = {
                "requests": {"cpu": "100m", "memory": "128Mi"},
                "limits": {"memory": "128Mi"},
            }
    return found


async def test_it_is_held_until_there_is_room_and_then_runs_to_its_end(kube: Kube, tmp_path: Path) -> None:
    async with running_rig(kube, tmp_path) as rig:
        await rig.tenant(cpu=0.5, ram=1024)
        await rig.brings(job("first", LASTS))
        first = await rig.until("first", "running")
        assert (first.user, first.tenant, first.runtime, first.workers) == ("ann", "red", "plain", 1)
        assert (first.cpu, first.ram) == (0.3, 64)
        assert rig.held() == Resources(cpu=300, ram=64)
        (pod,) = await rig.pods(job="first", user="ann", tenant="red")
        chosen = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        (term,) = chosen["nodeSelectorTerms"]
        assert term["matchFields"][0]["values"] == [first.ranks[0].node]

        await rig.brings(job("second", "print('done')"))
        await rig.until("second", "queued")

        async def why() -> Any:
            found = await rig.platform.jobs.why(SYSTEM, "ann", "second")
            return found if found.reasons else None

        told = await until(why, what="why it waits", every=0.1)
        assert "0.3" in str(told.reasons[0].message), told
        held = await rig.found("job/second")
        assert held["spec"]["suspend"] is True
        assert held["metadata"]["labels"]["mlp-hub/job"] == "second"
        assert not await rig.pods(job="second")

        await rig.platform.jobs.cancel(SYSTEM, "ann", "first")
        await rig.until("first", "cancelled")
        await rig.gone("job/first")
        second = await rig.until("second", "finished")
        assert [rank.state for rank in second.ranks] == ["finished"]
        assert rig.held() == Resources()
        ended = await rig.found("job/second")  # what has ended is its user's to look at, and to remove
        assert ended["status"]["succeeded"] == 1
        assert "done" in await rig.kubectl("logs", "job/second")
        await rig.platform.jobs.delete(SYSTEM, "ann", "second")
        await rig.gone("job/second")


async def test_jobs_of_the_operators_run_as_gangs(kube: Kube, tmp_path: Path) -> None:
    async with running_rig(kube, tmp_path) as rig:
        await rig.tenant(cpu=2.0, ram=2048)
        for file, name, kind, roles in (
            ("mpi.yaml", "ranks", MPI_JOBS, ["launcher", "worker", "worker"]),
            ("tensorflow.yaml", "tasks", TF_JOBS, ["chief", "worker"]),
        ):
            await rig.brings(example(file))
            ran = await rig.until(name, "running", "finished")
            assert ran.workers == len(roles)
            ended = await rig.until(name, "finished")
            assert [rank.role for rank in ended.ranks] == roles, ended.ranks
            assert rig.held() == Resources()
            stands = await rig.found(f"{kind.plural}.{kind.api_version.partition('/')[0]}/{name}")
            assert any(c["type"] == "Succeeded" for c in stands["status"]["conditions"])


async def test_a_pytorch_job_of_workers_runs(kube: Kube, tmp_path: Path) -> None:
    async with running_rig(kube, tmp_path) as rig:
        await rig.tenant(cpu=2.0, ram=2048)
        torch = job("torch", "print('here')", cpu="100m", kind=PYTORCH_JOBS)
        replicas = torch["spec"]["pytorchReplicaSpecs"]
        torch["spec"]["pytorchReplicaSpecs"] = {"Worker": {**replicas["Master"], "replicas": 2}}
        await rig.brings(torch)
        ended = await rig.until("torch", "finished")
        assert [rank.state for rank in ended.ranks] == ["finished", "finished"]


async def test_a_kubectl_job_gives_way_and_continues_once_it_may_run_again(
    kube: Kube, tmp_path: Path
) -> None:
    async with running_rig(kube, tmp_path) as rig:
        await rig.tenant(cpu=0.5, ram=2048)
        await rig.brings(job("long", LASTS))
        await rig.until("long", "running")
        urgent = JobCreate(name="urgent", code=LASTS, cpu=0.4, ram=128, tenant="red", priority="high")
        await rig.platform.jobs.submit("ann", urgent)
        await rig.until("urgent", "running")
        assert (await rig.found("job/long"))["spec"]["suspend"] is True
        assert rig.held() == Resources(cpu=400, ram=128)
        await rig.platform.jobs.cancel(SYSTEM, "ann", "urgent")
        again = await rig.until("long", "running")
        assert again.restarts == 1
        assert [e.kind for e in await rig.platform.jobs.events(SYSTEM, "ann", "long")].count("running") == 2

        await rig.platform.jobs.suspend(SYSTEM, "ann", "long")
        await rig.until("long", "suspended")
        assert rig.held() == Resources()
        await rig.platform.jobs.resume(SYSTEM, "ann", "long")
        await rig.until("long", "running")
        await rig.kubectl("delete", "job", "long", "--wait=false")
        await rig.until("long", "cancelled")
        assert rig.held() == Resources()


async def test_an_mpi_job_gives_way_and_runs_again(kube: Kube, tmp_path: Path) -> None:
    async with running_rig(kube, tmp_path) as rig:
        await rig.tenant(cpu=2.0, ram=2048)
        lasts = example("mpi.yaml")
        launcher = lasts["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
        launcher["command"] = [*launcher["command"][:-1], "test -e /tmp/go || sleep 600"]
        await rig.brings(lasts)
        await rig.until("ranks", "running")
        await rig.platform.jobs.suspend(SYSTEM, "ann", "ranks")
        await rig.until("ranks", "suspended")
        assert rig.held() == Resources()
        assert not [p for p in await rig.pods(job="ranks") if p["status"]["phase"] == "Running"]
        await rig.platform.jobs.resume(SYSTEM, "ann", "ranks")
        again = await rig.until("ranks", "running")
        assert again.restarts == 1

        async def all_there() -> bool:
            pods = await rig.pods(attempt=f"{again.uid}.1")
            # a launcher whose workers were not yet there may have failed once, and is begun again beside what is left of it
            return len([p for p in pods if p["status"]["phase"] == "Running"]) == 3

        await until(all_there, what="all pods of the second attempt", every=0.3)


async def test_two_of_one_name_and_a_hub_that_was_away(kube: Kube, tmp_path: Path) -> None:
    async with running_rig(kube, tmp_path) as rig:
        await rig.tenant(cpu=1.0, ram=2048)
        await rig.brings(job("same", LASTS))
        await rig.until("same", "running")
        await rig.brings(job("same", LASTS, kind=TF_JOBS))

        async def other() -> str | None:
            jobs, _ = await rig.platform.jobs.list(SYSTEM, "ann")
            names = {each.name for each in jobs} - {"same"}
            return min(names) if names else None

        name = await until(other, what="the other of its name", every=0.1)
        assert name.startswith("same-")
        await rig.until(name, "running")
        before = [p["metadata"]["uid"] for p in await rig.pods(tenant="red")]

        await rig.stop()
        await rig.kubectl("delete", "job", "same", "--wait=false")
        await rig.brings(job("late", "print('late')"))
        await rig.start()
        await rig.until("same", "cancelled")
        await rig.until("late", "finished")
        assert (await rig.until(name, "running")).restarts == 0
        uids = [p["metadata"]["uid"] for p in await rig.pods(job=name)]
        assert set(uids) <= set(before)

        await rig.kubectl("delete", "tfjob", "same", "--wait=false")
        await rig.until(name, "cancelled")
        assert rig.held() == Resources()


async def test_a_job_that_may_not_run_and_a_job_that_fails_show_the_reason(
    kube: Kube, tmp_path: Path
) -> None:
    async with running_rig(kube, tmp_path) as rig:
        await rig.tenant(cpu=0.5, ram=2048)
        await rig.brings(job("large", LASTS, cpu="900m"))
        foreign = job("foreign", LASTS)
        foreign["metadata"]["annotations"]["mlp-hub/user"] = "eve"
        text = yaml.safe_dump(foreign)
        await asyncio.to_thread(
            lambda: kube("-n", rig.namespace, "create", "-f", "-", given=text)
        )  # an administrator

        async def refused(name: str) -> str | None:
            notes = (await rig.found(f"job/{name}"))["metadata"]["annotations"]
            return notes.get("mlp-hub/refused")

        said = await until(lambda: refused("large"), what="the refusal", every=0.1)
        assert "0.9" in said
        assert "0.5" in said
        said = await until(lambda: refused("foreign"), what="the other refusal", every=0.1)
        assert "the hub has no user eve" in said
        for name in ("large", "foreign"):
            assert (await rig.found(f"job/{name}"))["spec"]["suspend"] is True

        patient = job(
            "patient",
            "import os, sys; os.path.exists('/tmp/again') or (open('/tmp/again', 'w'), sys.exit(1))",
        )
        spec = patient["spec"]["template"]["spec"]
        spec |= {"restartPolicy": "OnFailure", "volumes": [{"name": "tmp", "emptyDir": {}}]}
        spec["containers"][0]["volumeMounts"] = [{"name": "tmp", "mountPath": "/tmp"}]
        await rig.brings(patient)
        await rig.until("patient", "finished")

        broken = job("broken", "raise SystemExit(3)")
        broken["spec"]["backoffLimit"] = 0
        await rig.brings(broken)
        failed = await rig.until("broken", "failed")
        assert failed.failure is not None
        assert (failed.failure.cause, failed.failure.exit_code) == ("program-error", 3)

        loose = job(
            "loose", LASTS
        )  # nothing is wrong with the template but that pods are refused here that are so
        del loose["spec"]["template"]["spec"]["securityContext"]["seccompProfile"]
        await rig.brings(loose)
        failed = await rig.until("loose", "failed")
        assert "violates PodSecurity" in str(failed.message)

        by_hand = {
            "spec": {"suspend": False}
        }  # by an administrator: it is held again, and none of its pods was let in
        await asyncio.to_thread(
            lambda: kube(
                "-n", rig.namespace, "patch", "job", "large", "--type=merge", "-p", yaml.safe_dump(by_hand)
            )
        )

        async def held() -> bool:
            return bool((await rig.found("job/large"))["spec"]["suspend"])

        await until(held, what="it to be held again", every=0.1)
        assert not await rig.pods(job="large")
        assert rig.held() == Resources()


PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "tenants-in-a-cluster.md"


async def test_the_example_of_the_page_runs_unchanged(kube: Kube, tmp_path: Path) -> None:
    text = PAGE.read_text().partition("kubectl create -n mlp-red -f - <<EOF\n")[2].partition("    EOF\n")[0]
    (given,) = yaml.safe_load_all(textwrap.dedent(text))
    (container,) = given["spec"]["template"]["spec"]["containers"]
    container["image"] = IMAGE

    async with running_rig(kube, tmp_path) as rig:
        await rig.tenant(cpu=2.0, ram=2048)
        await rig.brings(given)
        ended = await rig.until("train", "finished")
        assert [rank.state for rank in ended.ranks] == ["finished", "finished"]
        assert rig.held() == Resources()
        chosen = ("logs", "--selector=job-name=train", "--tail=-1")
        assert sorted((await rig.kubectl(*chosen)).split("\n")) == ["", "rank 0", "rank 1"]
        listed = await rig.kubectl("get", "jobs", "-L", "mlp-hub/job")
        assert listed.splitlines()[-1].split()[-1] == "train"

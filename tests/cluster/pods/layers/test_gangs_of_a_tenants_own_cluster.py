"""Gangs of a tenant's own cluster are admitted whole below, and MPI Operator above runs its ranks below."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from mlp_api.jobs.jobs import JobCreate
from mlp_cluster.place import Place
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from support.cluster.kube import Kube
from support.cluster.layer_rig import SMALL, TAKES, LayerRig, layer_rig

Upper = tuple[Kube, Place]
EXAMPLES = Path(__file__).parents[1] / "jobs"
RANK = "import os, time; print('rank', os.environ['RANK'], 'of', os.environ['SIZE']); time.sleep(600)"


def gang(rig: LayerRig, count: int, size: int, *, cpu: str = "50m") -> list[dict[str, Any]]:
    """Return pods that are a gang of this size by their annotations."""
    notes = {"mlp-hub/gang": "ranks", "mlp-hub/gang-size": str(size)}
    found = []
    for rank in range(count):
        env = [{"name": "RANK", "value": str(rank)}, {"name": "SIZE", "value": str(size)}]
        found.append(
            rig.pod(f"rank-{rank}", RANK, cpu=cpu, about={"annotations": notes}, container={"env": env})
        )
    return found


async def admitted(rig: LayerRig, name: str) -> str:
    conditions = (await rig.get(f"pod/{name}"))["status"].get("conditions", [])
    return next((c["message"] for c in conditions if c["type"] == "mlp-hub/Admitted"), "")


async def test_a_gang_goes_down_whole_and_runs_whole(kube: Kube, upper: Upper, tmp_path: Path) -> None:
    async with layer_rig(kube, upper, tmp_path, cpu=1.0, ram=1024) as rig:
        await rig.start_until_ready()
        await rig.hub.platform.users.approve("ann", actor="admin")
        await rig.hub.platform.tenants.set_member("red", "ann")
        fills = JobCreate(name="fills", code="import time; time.sleep(600)", cpu=0.6, ram=128, tenant="red")
        await rig.hub.platform.jobs.submit("ann", fills)
        await rig.hub.until("fills", "running")
        pods = gang(rig, 3, 3, cpu="150m")
        await rig.apply(*pods[:2])

        async def incomplete() -> bool:
            return "2 of 3 pods" in await admitted(rig, "rank-0")

        await rig.wait(incomplete, "the gang to wait for its last pod")
        assert await rig.jobs() == []
        await rig.apply(pods[2])

        async def waits() -> bool:
            return "cpu" in await admitted(rig, "rank-2")

        await rig.wait(waits, "the gang to wait for its room")  # two of three would fit
        (job,) = await rig.jobs()
        assert job["spec"]["completions"] == 3
        assert await rig.pods() == []
        await rig.hub.platform.jobs.cancel(SYSTEM, "ann", "fills")
        for rank in range(3):
            await rig.until(f"rank-{rank}", "Running")

            async def log(rank: int = rank) -> bool:
                said = await rig.kubectl("-n", rig.namespace, "logs", f"rank-{rank}")
                return said == f"rank {rank} of 3\n"

            await rig.wait(log, "the log of its own rank")
        await rig.kubectl("-n", rig.namespace, "delete", "pod", "rank-1", "--wait=false")
        await rig.gone("pod/rank-1")
        await rig.until("rank-0", "Failed")  # a gang ends as a whole
        await rig.kubectl("-n", rig.namespace, "delete", "pods", "--all", "--wait=false")
        await rig.empty()


async def test_pods_of_a_gang_that_differ_are_refused_with_the_field(
    kube: Kube, upper: Upper, tmp_path: Path
) -> None:
    async with layer_rig(kube, upper, tmp_path, cpu=3.0, ram=1024) as rig:
        await rig.start_until_ready()
        one, other = gang(rig, 2, 2)
        other["spec"]["containers"][0]["command"] = ["sleep", "1"]
        await rig.apply(one, other)
        failed = await rig.until("rank-0", "Failed")
        assert ".spec.containers[0].command" in failed["status"]["message"]
        assert await rig.jobs() == []


async def test_a_volcano_job_above_is_one_gang_below(kube: Kube, upper: Upper, tmp_path: Path) -> None:
    async with layer_rig(kube, upper, tmp_path, cpu=3.0, ram=1024) as rig:
        await rig.start_until_ready()
        spec = rig.pod("x", "import os; print('index', os.environ['VC_TASK_INDEX'])")["spec"]
        task = {"replicas": 2, "name": "rank", "template": {"spec": spec}}
        await rig.apply(
            {
                "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
                "metadata": {"name": "train", "namespace": rig.namespace},
                "spec": {"minAvailable": 2, "schedulerName": "volcano", "plugins": {"env": []}, "tasks": [task]},
            }
        )  # fmt: skip

        async def completed() -> bool:
            job = await rig.get("jobs.batch.volcano.sh/train")
            return job.get("status", {}).get("state", {}).get("phase") == "Completed"

        await rig.wait(completed, "the Volcano job above to complete")
        (job,) = await rig.jobs()
        assert job["spec"]["completions"] == 2


async def test_an_mpi_job_of_the_operator_above_runs_below(kube: Kube, upper: Upper, tmp_path: Path) -> None:
    async with layer_rig(kube, upper, tmp_path, cpu=6.0, ram=2048) as rig:
        await rig.start_until_ready()
        mpi = yaml.safe_load((EXAMPLES / "mpi.yaml").read_text())
        mpi["metadata"]["namespace"] = rig.namespace
        for role, replicas in mpi["spec"]["mpiReplicaSpecs"].items():
            template = replicas["template"]
            template["spec"] |= {"tolerations": TAKES, "nodeSelector": {"kubernetes.io/hostname": rig.node}}
            template["spec"]["containers"][0]["resources"] = SMALL
            if role == "Worker":
                notes = {"mlp-hub/gang": "workers", "mlp-hub/gang-size": str(replicas["replicas"])}
                template["metadata"] = {"annotations": notes}
        await rig.apply(mpi)

        async def succeeded() -> bool:
            conditions = (await rig.get("mpijobs.kubeflow.org/ranks")).get("status", {}).get(
                "conditions"
            ) or []
            return any(c["type"] == "Succeeded" and c["status"] == "True" for c in conditions)

        await rig.wait(succeeded, "the MPIJob above to succeed")
        launcher = next(
            p["metadata"]["name"]
            for p in (await rig.get("pods"))["items"]
            if p["metadata"]["name"].startswith("ranks-launcher") and p["status"]["phase"] == "Succeeded"
        )
        log = await rig.kubectl("-n", rig.namespace, "logs", launcher)
        assert min(line for line in log.splitlines() if line.startswith("rank ")).startswith("rank 0 of 3")
        assert {len(j["metadata"]["annotations"]["mlp-layer/pods"].split(",")) for j in await rig.jobs()} == {
            1,
            2,
        }
        await rig.kubectl("-n", rig.namespace, "delete", "mpijobs.kubeflow.org", "ranks")
        await rig.empty()

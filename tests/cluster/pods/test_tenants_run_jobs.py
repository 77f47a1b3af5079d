"""Jobs of each operator in a tenant's namespace: its quota, its policies and Pod Security let them pass, with real pods."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from mlp_hub.domain.resources import Quota
from mlp_hub.executors.base import TenantPlace
from support.cluster.kube import Kube, Namespace
from support.cluster.pods import pod
from support.cluster.tenancy import running_rig

JOBS = Path(__file__).parent / "jobs"
RED = TenantPlace("red", Quota(cpu=4000, ram=4096, gpu=0))


def labelled(found: Any) -> Any:
    """Return an object whose pods carry the label that the hub's do."""
    if isinstance(found, list):
        return [labelled(each) for each in found]
    if not isinstance(found, dict):
        return found
    made = {key: labelled(value) for key, value in found.items()}
    if "template" in made:
        about = made["template"].setdefault("metadata", {})
        about["labels"] = {**about.get("labels", {}), "mlp-hub/tenant": "red"}
    return made


ENDS = {
    "mpi.yaml": ("mpijob/ranks", "condition=Succeeded"),
    "tensorflow.yaml": ("tfjob/tasks", "condition=Succeeded"),
    "volcano.yaml": ("jobs.batch.volcano.sh/gang", "jsonpath={.status.state.phase}=Completed"),
}


@pytest.mark.whole
async def test_jobs_of_the_operators_run_in_a_tenants_namespace(kube: Kube) -> None:
    async with running_rig(kube) as own:
        await own.keep(RED)
        namespace = Namespace(kube, own.at.namespace_of("red"))

        def run() -> None:
            for file, (what, holds) in ENDS.items():
                for each in yaml.safe_load_all((JOBS / file).read_text()):
                    namespace.apply(labelled(each))
                namespace.until(what, holds)

        await asyncio.to_thread(run)
        used = namespace.get("resourcequota", "mlp-limits")["status"]["hard"]
        assert used["requests.cpu"] == "8"


async def test_a_pod_sees_its_own_directory_of_the_volume_and_no_token(kube: Kube, tmp_path: Path) -> None:
    root = tmp_path / "files"
    for user in ("ann", "bob"):
        home = root / "homes" / user
        home.mkdir(parents=True)
        home.chmod(0o777)
        (home / "whose").write_text(user)

    async with running_rig(kube, volume={"hostPath": {"path": str(root), "type": "Directory"}}) as own:
        await own.keep(RED)
        namespace = Namespace(kube, own.at.namespace_of("red"))
        looks = "ls /home; cat /home/ann/whose; echo; ls /var/run/secrets 2>&1 || true; echo here > /home/ann/made"
        given = pod(
            "looks",
            {"mlp-hub/tenant": "red"},
            volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "mlp-files"}}],
            container={
                "image": "mlp.local/mpi:dev",
                "imagePullPolicy": "IfNotPresent",
                "command": ["sh", "-c", looks],
                "volumeMounts": [{"name": "v", "mountPath": "/home/ann", "subPath": "homes/ann"}],
            },
        )

        def run() -> str:
            namespace.apply(given)
            namespace.until("pod/looks", "jsonpath={.status.phase}=Succeeded")
            return namespace("logs", "looks")

        said = await asyncio.to_thread(run)
        assert "ann" in said.splitlines()
        assert "bob" not in said
        assert "kubernetes.io" not in said
        assert (root / "homes" / "ann" / "made").read_text() == "here\n"

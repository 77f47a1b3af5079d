"""Images that tenants' runtimes name: ranks run in them, nodes have them before they are needed, and one that is none is told."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_api.jobs.runtimes import RuntimeUpdate
from mlp_cluster import fake_nodes
from mlp_hub.domain.jobs.job import Cause
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.runtime.runtime import Runtime
from mlp_hub.executors.base import AttemptPhase as A
from mlp_hub.executors.kubernetes import pod_problems
from mlp_hub.executors.kubernetes.nodes import prewarming
from mlp_hub.executors.shared_volume.logs import read_log
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import DAEMON_SETS, NAMESPACES
from mlp_hub.service.tenants.runtime_rules import runtime_from
from support.cluster.kube import Kube
from support.cluster.kube_installation import installation
from support.cluster.kube_lab import KubeLab, until
from support.waiting import until as wait_until

TENSORFLOW, NONE = "mlp.local/tf:dev", "mlp.local/nowhere:1"
FINDS = "import importlib.util; print('tensorflow' if importlib.util.find_spec('tensorflow') else 'none')"


def runtime(image: str) -> Runtime:
    asked = RuntimeUpdate(title="Mine", image=image)
    return runtime_from("default", "mine", asked, images=True)


@pytest.fixture
def lab(kube: Kube, tmp_path: Path) -> Iterator[KubeLab]:
    lab = KubeLab(kube, tmp_path)
    yield lab
    lab.close()


async def test_ranks_of_a_runtime_run_in_its_image(lab: KubeLab) -> None:
    mine = lab.spec(FINDS, runtime=runtime(TENSORFLOW), per_worker=Resources(cpu=100, ram=256))
    plain = lab.spec(FINDS)

    async with lab.executing() as executor:
        for spec, found in ((mine, "tensorflow"), (plain, "none")):
            await executor.start(spec)
            await until(executor, spec.attempt, A.SUCCEEDED)
            lines = read_log(lab.directories.workspace(spec.of_run), 0).lines
            assert [line.text for line in lines] == [found]


async def test_an_image_that_does_not_exist_fails_the_job_and_is_named(
    lab: KubeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = lab.spec("print('never')", runtime=runtime(NONE))
    monkeypatch.setattr(pod_problems, "IMAGE_S", 0.0)

    async with lab.executing() as executor:
        await executor.start(spec)
        seen = await until(executor, spec.attempt, A.FAILED)
        assert seen.failure is not None
        assert seen.failure.cause is Cause.START_FAILED
        assert NONE in str(seen.failure.localized_message)


async def test_nodes_have_an_image_before_it_is_needed_and_one_that_is_none_is_told(kube: Kube) -> None:
    """A second node, which kwok plays, makes it worth it; its taint keeps these pods off it."""
    name = f"p{uuid.uuid4().hex[:6]}"
    node = fake_nodes.node(0, 0)
    node["metadata"]["name"] = name
    at = installation(name, image="mlp.local/notebook:dev", prewarmed=3)

    kube("apply", "--server-side", "-f", "-", given=json.dumps(node))
    try:
        client = await KubernetesClient.connect(kube.kubeconfig)
        try:
            space = NAMESPACES.named(at.namespace)
            space["metadata"]["labels"] = {"pod-security.kubernetes.io/enforce": "restricted"}
            await client.apply(space, NAMESPACES)
            await prewarming.keep(client, at, [NONE, TENSORFLOW])

            async def told() -> bool:
                kept = (await client.list(DAEMON_SETS, at.namespace, labels=prewarming.selector(at))).items
                found = {image: (ready, of) for image, ready, of in map(prewarming.keeper_status, kept)}
                return found == {at.image: (1, 1), TENSORFLOW: (1, 1), NONE: (0, 1)}

            await wait_until(told, what="the images on the node", every=0.3)
        finally:
            await client.close()
    finally:
        kube("delete", "node", name, "--wait=false")
        kube("delete", "namespace", at.namespace, "--wait=false", "--ignore-not-found")

"""Whether the network enforces policies is found out by real pods."""

from __future__ import annotations

import asyncio
import os
import socket
import uuid
from dataclasses import replace

import pytest

from mlp_hub import in_cluster
from mlp_hub.cli.doctor.checks import OK, WARN
from mlp_hub.cli.doctor.cluster import cluster
from mlp_hub.domain.errors import Unavailable
from mlp_hub.executors.kubernetes.probes.policies import CallResult, Enforcement, enforcement, reached
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import NAMESPACES
from mlp_hub.settings import Settings
from support.cluster.kube import Kube
from support.cluster.kube_installation import installation


@pytest.mark.differs("Network isolation", only="cluster")
async def test_a_network_that_enforces_no_policy_is_told_from_one_that_does(kube: Kube) -> None:
    client = await KubernetesClient.connect(kube.kubeconfig)
    try:
        found = await enforcement(client, replace(installation(), image="mlp.local/mpi:dev"))
    finally:
        await client.close()
    assert found != Enforcement.UNKNOWN
    if not os.environ.get("KUBECONFIG"):  # this clone's own enforces none
        assert found == Enforcement.NOT_ENFORCED


@pytest.mark.whole
def test_probes_check_what_a_tenants_pod_reaches_of_the_hub_and_that_the_hub_reaches_it(kube: Kube) -> None:
    # of nobody is there a machine that listens at the last one
    host = in_cluster.address_of(Settings.load({"MLP_KUBERNETES_CONFIG": str(kube.kubeconfig)}))
    with socket.create_server((host, 0)) as hub, socket.create_server((host, 0)) as closed:
        answers, gone = (host, hub.getsockname()[1]), (host, closed.getsockname()[1])
        closed.close()
        places = {"hub": answers, "service": gone, "data": ("10.254.254.1", 9)}
        at = replace(installation(f"t{uuid.uuid4().hex[:6]}"), image="mlp.local/mpi:dev", **places)

        async def story() -> None:
            client = await KubernetesClient.connect(kube.kubeconfig)
            try:
                found = await reached(client, at)
            finally:
                await client.close()
            assert found.outward == {
                answers: CallResult.ANSWERS,
                gone: CallResult.CLOSED,
                places["data"]: CallResult.SILENT,
            }
            assert found.inward

        asyncio.run(story())


async def test_an_image_that_is_not_there_leaves_it_unknown_and_nothing_behind(kube: Kube) -> None:
    client = await KubernetesClient.connect(kube.kubeconfig)
    at = replace(installation(f"t{uuid.uuid4().hex[:6]}"), image="mlp.local/nowhere:1", pull_policy="Never")
    try:
        with pytest.raises(Unavailable, match=r"a pod of image mlp\.local/nowhere:1 does not run: "):
            await enforcement(client, at)
        found = await client.list(NAMESPACES, labels=at.selector)
        assert all("deletionTimestamp" in each["metadata"] for each in found.items)
    finally:
        await client.close()


def test_doctor_says_whether_policies_hold(kube: Kube) -> None:
    environ = {
        "MLP_EXECUTOR": "kubernetes",
        "MLP_KUBERNETES_CONFIG": str(kube.kubeconfig),
        "MLP_KUBERNETES_IMAGE": "mlp.local/mpi:dev",
        "MLP_KUBERNETES_NAME": f"t{uuid.uuid4().hex[:6]}",
    }
    checks = cluster(Settings.load(environ))
    found = {each.name: each for each in checks}
    assert [
        each.found for each in checks if each.name == "operators" and each.found.endswith(": tested")
    ] == [
        "MPI Operator works: tested",
        "Training Operator works: tested",
        "Volcano's scheduler works: tested",
    ]
    assert found["address"].status == OK, found["address"]
    assert (found["rights"].status, found["nodes"].status) == (OK, OK), found
    if not os.environ.get("KUBECONFIG"):
        assert found["network"].status == WARN
        assert "the network enforces no policies" in found["network"].found

"""Operators are killed: whoever tries them says so, though the API serves their kinds as before."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace

from mlp_cluster.place import clone_name, find
from mlp_cluster.space import Space
from mlp_cluster.up import up
from mlp_hub.executors.kubernetes.operators import discover
from mlp_hub.executors.kubernetes.probes.operators import at_work
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import NAMESPACES
from support.cluster.kube import Kube
from support.cluster.kube_installation import installation


def test_operators_that_are_down_are_told_from_those_at_work(kube: Kube) -> None:
    place = find(clone_name())
    assert place is not None
    space = Space(place)
    at = replace(installation(f"t{uuid.uuid4().hex[:6]}"), image="mlp.local/mpi:dev")

    async def tried() -> dict[str, str]:
        client = await KubernetesClient.connect(kube.kubeconfig)
        try:
            found = await at_work(client, at, (await discover(client)).served, patience_s=5.0)
            left = await client.list(NAMESPACES, labels=at.selector)
            assert all("deletionTimestamp" in each["metadata"] for each in left.items)
        finally:
            await client.close()
        return {who: str(fails or "") for who, fails in found.items()}

    pods = "kubelet" in space.running()
    try:
        for program in ("mpi-operator", "training-operator", "volcano-scheduler"):
            space.kill(program)
        found = asyncio.run(tried())
        assert found["MPI Operator"] == "nothing handled a trial MPIJob within 5 s"
        assert "its webhook validator." in found["Training Operator"]
        assert found["Volcano's scheduler"] == "it did not react to a trial pod within 5 s"
    finally:
        up(clone_name(), pods=pods)

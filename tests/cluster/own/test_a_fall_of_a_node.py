"""The cluster's node is killed, or closed to what runs on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from mlp_cluster.place import clone_name, find
from mlp_cluster.space import Space
from mlp_cluster.up import up
from mlp_hub.domain.jobs.job import Cause
from mlp_hub.executors.base import AttemptPhase, LaunchSpec, Observation
from mlp_hub.executors.kubernetes import verdict
from mlp_hub.executors.kubernetes.composed import ClusterExecutor
from mlp_hub.kubernetes.client import KubernetesClient
from support import waiting
from support.cluster.kube import Kube
from support.cluster.kube_lab import KubeLab, until
from support.executors.executor_lab import PROGRAMS

A = AttemptPhase


@pytest.fixture
def lab(kube: Kube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KubeLab]:
    monkeypatch.setattr(verdict, "LEFT_S", 1.0)
    lab = KubeLab(kube, tmp_path)
    lab.at = replace(lab.at, node_lost_s=1)
    yield lab
    lab.close()


@asynccontextmanager
async def running_gang(lab: KubeLab) -> AsyncIterator[tuple[ClusterExecutor, LaunchSpec]]:
    """Run a test on an executor that sees the cluster's nodes, with a gang that runs."""
    spec = lab.spec("print('began', flush=True); " + PROGRAMS["lasts"], workers=2)

    executor = ClusterExecutor(KubernetesClient(lab.configuration), lab.at, lab.ways)
    try:
        await executor.open()
        await executor.start(spec)

        async def all_run() -> bool:
            seen = (await executor.observe([spec.attempt]))[spec.attempt]
            return bool(seen.ranks) and all(rank.state == "running" for rank in seen.ranks)

        await waiting.until(all_run, what="both ranks to run", every=0.1)
        yield executor, spec
        await executor.forget(spec.attempt)

        async def gone() -> bool:
            return not await asyncio.to_thread(lab.left)

        await waiting.until(gone, what="all of it to go", every=0.3)
    finally:
        await executor.close()


def said(seen: Observation) -> str:
    assert seen.failure is not None
    assert seen.failure.cause is Cause.NODE_LOST  # after which a job is tried again elsewhere
    return str(seen.failure.localized_message)


async def test_a_gang_whose_node_is_killed_is_lost_whole(lab: KubeLab) -> None:
    place = find(clone_name())
    assert place is not None

    try:
        async with running_gang(lab) as (executor, spec):
            await asyncio.to_thread(Space(place).kill, "kubelet")
            seen = await until(executor, spec.attempt, A.LOST)
            assert "Taint manager" in said(seen)
            assert [node.ready for node in executor.nodes() if node.name == lab.nodes[0].name] == [False]
            await asyncio.to_thread(up, clone_name(), pods=True)
    finally:
        up(clone_name(), pods=True)


async def test_a_gang_whose_node_is_closed_to_it_is_lost_whole(lab: KubeLab) -> None:
    node = lab.nodes[0].name

    try:
        async with running_gang(lab) as (executor, spec):
            await asyncio.to_thread(lab.kube, "taint", "nodes", node, "mlp-test=gone:NoExecute")
            seen = await until(executor, spec.attempt, A.LOST)
            assert said(seen).startswith("the cluster removed the pod of rank ")
            assert "Taint manager" in said(seen)
            await asyncio.to_thread(lab.kube, "taint", "nodes", node, "mlp-test-")
    finally:
        if "mlp-test" in lab.kube("get", "node", node, "-o", "jsonpath={.spec.taints}"):
            lab.kube("taint", "nodes", node, "mlp-test-")

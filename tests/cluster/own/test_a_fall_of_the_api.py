"""The API server or its store is killed and comes back: what is kept by watches, and what runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mlp_cluster.place import clone_name, find
from mlp_cluster.space import Space
from mlp_cluster.up import up
from mlp_hub.executors.base import AttemptPhase
from mlp_hub.kubernetes import client as clients
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.errors import ClusterUnreachable
from mlp_hub.kubernetes.kinds import CONFIG_MAPS, Object
from mlp_hub.kubernetes.reflector import Reflector, Selection
from support import waiting
from support.cluster.kube import Kube, Namespace
from support.cluster.kube_lab import KubeLab, configuration, until
from support.executors.executor_lab import PROGRAMS


def kill(program: str) -> None:
    place = find(clone_name())
    assert place is not None
    Space(place).kill(program)


def revive(kube: Kube) -> None:
    place = find(clone_name())
    assert place is not None
    up(clone_name(), pods="kubelet" in Space(place).running() or "containerd" in Space(place).running())


def value(found: Object) -> str | None:
    return (found.get("data") or {}).get("a")


async def test_a_copy_continues_after_the_api_server_is_killed(kube: Kube, namespace: Namespace) -> None:
    told: list[tuple[str | None, str | None]] = []

    client = KubernetesClient(configuration(kube.kubeconfig))
    one = CONFIG_MAPS.named("one", namespace.name, data={"a": "1"})
    copy = Reflector(
        client, Selection(CONFIG_MAPS, namespace.name), value, lambda _, old, new: told.append((old, new))
    )
    task = asyncio.ensure_future(copy.run())
    try:
        await client.create(one, CONFIG_MAPS)
        await waiting.until(lambda: _now(copy.objects))
        await asyncio.to_thread(kill, "kube-apiserver")
        with pytest.raises(ClusterUnreachable):
            await client.get(CONFIG_MAPS, "one", namespace.name)
        await waiting.until(lambda: _now(copy.trouble), what="trouble")
        assert list(copy.objects.values()) == ["1"]  # what was known is still told
        await asyncio.to_thread(revive, kube)
        await client.patch(CONFIG_MAPS, "one", {"data": {"a": "2"}}, namespace.name)
        await waiting.until(lambda: _now(list(copy.objects.values()) == ["2"]))
        assert copy.trouble is None
    finally:
        task.cancel()
        await client.close()
    assert told == [(None, "1"), ("1", "2")]


async def _now(found: object) -> object:
    return found


@pytest.mark.parametrize("program", ["kube-apiserver", "etcd"])
async def test_attempts_continue_while_the_api_is_away(
    kube: Kube, tmp_path: Path, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "ANSWER_S", 5.0)  # without its store the API keeps silent
    lab = KubeLab(kube, tmp_path)
    lasts = lab.spec("print('began', flush=True); " + PROGRAMS["lasts"])
    ends = lab.spec("import time\nwhile not __import__('os').path.exists('/workspace/go'): time.sleep(0.05)")
    later = lab.spec("print('went')")

    try:
        async with lab.executing() as executor:
            for spec in (lasts, ends):
                await executor.start(spec)
            for spec in (lasts, ends):
                await until(executor, spec.attempt, AttemptPhase.RUNNING)
            before = await executor.observe([lasts.attempt, ends.attempt])
            await asyncio.to_thread(kill, program)
            with pytest.raises(ClusterUnreachable):
                await executor.start(later)
            with pytest.raises(ClusterUnreachable):
                await executor.stop(lasts.attempt, 5.0)
            assert await executor.observe([lasts.attempt, ends.attempt]) == before
            await asyncio.to_thread(lab.put_in_run, ends.of_run, "go", "")
            # what a rank writes down is known whether or not the cluster answers
            await until(executor, ends.attempt, AttemptPhase.SUCCEEDED)
            await asyncio.to_thread(revive, kube)
            await executor.start(later)
            await until(executor, later.attempt, AttemptPhase.SUCCEEDED)
            seen = (await executor.observe([lasts.attempt]))[lasts.attempt]
            assert seen == before[lasts.attempt]
            await executor.stop(lasts.attempt, 5.0)
            await until(executor, lasts.attempt, AttemptPhase.STOPPED)
    finally:
        revive(kube)
        lab.close()

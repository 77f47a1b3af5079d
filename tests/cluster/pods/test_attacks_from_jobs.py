"""What a job's program tries from its pod: its own record forged, what the service reads replaced, another's processes reached."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlp_hub.executors.base import AttemptKey, AttemptPhase, LaunchSpec
from mlp_hub.executors.kubernetes.executor import KubernetesExecutor
from mlp_hub.executors.workspace import JobRun
from support import waiting
from support.cluster.kube import Kube
from support.cluster.kube_lab import KubeLab, until

A = AttemptPhase
FORGES = """
import json, os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
record = json.loads(sys.argv[1])
name = f"/workspace/log/{sys.argv[2]}.0.json"
with open(name + ".mine", "w") as file:
    json.dump(record, file)
os.replace(name + ".mine", name)
print("forged", flush=True)
while True:
    time.sleep(1)
"""
"""A program that says of itself what it is told to, and goes on."""


@pytest.fixture
def lab(kube: Kube, tmp_path: Path) -> Iterator[KubeLab]:
    lab = KubeLab(kube, tmp_path)
    yield lab
    lab.close()


def forging(lab: KubeLab, record: dict[str, Any]) -> LaunchSpec:
    return lab.spec(FORGES, attempt="forges.0", args=(json.dumps(record), "forges.0"))


async def forged(executor: KubernetesExecutor, spec: LaunchSpec) -> None:
    key = AttemptKey(spec.attempt, JobRun(spec.user, spec.job, spec.run))

    async def look() -> bool:
        return "forged" in [line.text for line in (await executor.read_log(key, 0)).lines]

    await waiting.until(look, what="its forged record", every=0.1)


async def test_a_program_that_says_it_has_ended_is_ended_at_once(lab: KubeLab) -> None:
    """Its quota is free from then on: with the grace of its pod it would have for nothing what others wait for."""

    async with lab.executing() as executor:
        spec = forging(lab, {"state": "finished", "started_at": 1.0, "finished_at": 2.0, "exit_code": 0})
        await executor.start(spec)
        await forged(executor, spec)
        await until(executor, spec.attempt, A.SUCCEEDED)
        (pod,) = (await asyncio.to_thread(lab, "get", "pods", "-o", "name")).split()
        await executor.forget(spec.attempt)
        told = await asyncio.to_thread(lab, "get", pod, "-o", "json", "--ignore-not-found")
        assert not told or json.loads(told)["metadata"]["deletionGracePeriodSeconds"] == 1


async def test_a_reason_that_a_program_forges_is_told_as_text_or_not_at_all(lab: KubeLab) -> None:
    async with lab.executing() as executor:
        said = {"id": "{a:>2000000000}", "args": {"a": "x"}}
        spec = forging(lab, {"state": "failed", "said": said, "message": "no\x1b[2J\ud800 room"})
        await executor.start(spec)
        await forged(executor, spec)
        seen = await until(executor, spec.attempt, A.FAILED)
        assert seen.failure is not None
        assert str(seen.failure.localized_message) == "no room"

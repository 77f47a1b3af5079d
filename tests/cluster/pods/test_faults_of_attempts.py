"""What goes wrong with attempts in a cluster, and what the hub tells of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlp_hub.domain.errors import Unavailable
from mlp_hub.domain.jobs.job import Cause
from mlp_hub.domain.resources import Resources
from mlp_hub.executors.base import AttemptPhase, CannotStart, LaunchSpec, Observation
from mlp_hub.executors.kubernetes import executor as kubernetes_executor
from mlp_hub.executors.kubernetes import no_pods, pod_problems
from mlp_hub.executors.kubernetes.executor import KubernetesExecutor
from mlp_hub.kubernetes.client import KubernetesClient
from support import waiting
from support.cluster.kube import Kube
from support.cluster.kube_lab import KubeLab, OwnClientExecutor, until
from support.executors.executor_lab import PROGRAMS

LASTS = "print('began', flush=True); " + PROGRAMS["lasts"]
A = AttemptPhase


@pytest.fixture
def lab(kube: Kube, tmp_path: Path) -> Iterator[KubeLab]:
    lab = KubeLab(kube, tmp_path)
    yield lab
    lab.close()


def main_of(lab: KubeLab) -> str:
    (name,) = lab("get", "jobs.batch", "-o", "name").split()
    return name


async def waits(executor: KubernetesExecutor, spec: LaunchSpec, text: str) -> None:
    async def told() -> bool:
        seen = (await executor.observe([spec.attempt]))[spec.attempt]
        assert seen.phase is A.STARTING, seen
        return text in str(seen.waits or "")

    await waiting.until(told, what=f"it to say that it waits for {text}", every=0.05)


async def nothing_left(lab: KubeLab) -> None:
    async def look() -> bool:
        return not await asyncio.to_thread(lab.left)

    await waiting.until(look, what="all of it to go", every=0.3)


def lines(lab: KubeLab, spec: LaunchSpec) -> list[str]:
    from mlp_hub.executors.shared_volume.logs import read_log

    return [line.text for line in read_log(lab.directories.workspace(spec.of_run), 0).lines]


async def began(lab: KubeLab, spec: LaunchSpec) -> None:
    async def look() -> bool:
        return "began" in await asyncio.to_thread(lines, lab, spec)

    await waiting.until(look, what="its first line", every=0.1)


def said(seen: Observation) -> str:
    assert seen.failure is not None
    assert seen.failure.said is not None
    return str(seen.failure.localized_message)


@pytest.mark.differs("Starts that wait", only="cluster")
async def test_an_image_that_does_not_exist_is_told_and_then_fails_the_start(
    lab: KubeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = lab.spec("print('never')", image="mlp.local/nowhere:1")
    invalid = lab.spec("print('never')", image="Not An Image!")

    async with lab.executing() as executor:
        await executor.start(spec)
        await executor.start(invalid)
        await waits(executor, spec, "image cannot be fetched")
        monkeypatch.setattr(pod_problems, "IMAGE_S", 0.0)
        for each in (spec, invalid):
            seen = await until(executor, each.attempt, A.FAILED)
            assert seen.failure is not None
            assert seen.failure.cause is Cause.START_FAILED
            assert "image of rank 0 is not available" in said(seen)
        assert "mlp.local/nowhere:1" in said(await until(executor, spec.attempt, A.FAILED))


@pytest.mark.whole
async def test_an_image_without_python_fails_the_start_and_says_what_to_install(lab: KubeLab) -> None:
    spec = lab.spec("print('never')", image="mlp.local/pause:dev", workers=2)

    async with lab.executing() as executor:
        await executor.start(spec)
        seen = await until(executor, spec.attempt, A.FAILED)
        assert seen.failure is not None
        assert seen.failure.cause is Cause.START_FAILED  # which is not tried again
        assert said(seen) == "the image has no python3, which runs the ranks: install it there"
        await executor.forget(spec.attempt)
        await nothing_left(lab)


@pytest.mark.whole
async def test_more_memory_than_it_may_have_is_told_as_that(lab: KubeLab) -> None:
    spec = lab.spec("b = bytearray(1 << 30); print(len(b))")

    async with lab.executing() as executor:
        await executor.start(spec)
        seen = await until(executor, spec.attempt, A.FAILED)
        assert seen.failure is not None
        assert (seen.failure.cause, seen.failure.rank) == (Cause.OUT_OF_MEMORY, 0)


async def test_a_main_object_that_somebody_deletes_is_a_loss_and_nothing_begins_again(lab: KubeLab) -> None:
    spec = lab.spec(LASTS)

    async with lab.executing() as executor:
        await executor.start(spec)
        await until(executor, spec.attempt, A.RUNNING)
        await asyncio.to_thread(lab, "delete", main_of(lab), "--wait=false")
        seen = await until(executor, spec.attempt, A.LOST)
        assert said(seen).startswith("somebody deleted its Job job0001-")
        await executor.start(spec)
        assert (await executor.observe([spec.attempt]))[spec.attempt] == seen
        second = lab.executor()  # as after a restart of the hub
        await second.start(spec)
        again = (await second.observe([spec.attempt]))[spec.attempt]
        assert (again.phase, again.failure) == (A.LOST, seen.failure)
        await second.close()
        await executor.forget(spec.attempt)
        await nothing_left(lab)
    assert lines(lab, spec) == ["began"]


async def test_a_pod_that_somebody_deletes_ends_the_gang_whole(lab: KubeLab) -> None:
    spec = lab.spec(LASTS, workers=2)

    async with lab.executing() as executor:
        await executor.start(spec)

        async def both() -> bool:
            seen = await until(executor, spec.attempt, A.RUNNING)
            return all(rank.state == "running" for rank in seen.ranks)

        await waiting.until(both, every=0.05)
        (pod,) = [name for name in lab("get", "pods", "-o", "name").split() if "-1-" in name]
        await asyncio.to_thread(lab, "delete", pod, "--wait=false")
        seen = await until(executor, spec.attempt, A.LOST)
        assert seen.failure is not None
        assert (seen.failure.cause, seen.failure.rank) == (Cause.NODE_LOST, 1)
        assert f"somebody deleted the {pod.replace('/', ' ')} of rank 1" in said(seen)
        await executor.forget(spec.attempt)
        await nothing_left(lab)


async def test_a_claim_that_somebody_deletes_takes_all_with_it_and_it_never_begins_again(
    lab: KubeLab,
) -> None:
    spec = lab.spec(LASTS)

    async with lab.executing() as executor:
        await executor.start(spec)
        await until(executor, spec.attempt, A.RUNNING)
        await began(lab, spec)
        await asyncio.to_thread(lab, "delete", "configmaps", "-l", "mlp-hub/attempt")
        seen = await until(executor, spec.attempt, A.LOST)
        assert "somebody deleted its ConfigMap" in said(seen)
        assert list(await executor.known()) == [spec.attempt]
        await nothing_left(lab)
        await executor.start(spec)
        second = lab.executor()
        await second.start(spec)
        assert (await second.observe([spec.attempt]))[spec.attempt].phase is A.LOST
        await second.forget(spec.attempt)
        await second.close()
    assert lines(lab, spec) == ["began"]


@pytest.mark.whole
async def test_a_namespace_that_somebody_deletes_is_a_loss_and_starts_wait_until_it_is_there(
    lab: KubeLab,
) -> None:
    spec, later = lab.spec(LASTS), lab.spec("print('went')")

    async with lab.executing() as executor:
        await executor.start(spec)
        await until(executor, spec.attempt, A.RUNNING)
        await asyncio.to_thread(lab.kube, "delete", "namespace", lab.namespace, "--wait=false")
        with pytest.raises(Unavailable, match=lab.namespace):
            await executor.start(later)
        assert (await until(executor, spec.attempt, A.LOST)).failure is not None
        await asyncio.to_thread(
            lab.kube, "wait", f"namespace/{lab.namespace}", "--for=delete", "--timeout=120s"
        )
        with pytest.raises(Unavailable, match="not found"):
            await executor.start(later)
        await asyncio.to_thread(lab.kube, "delete", "pv", f"{lab.at.name}-files-default")
        await asyncio.to_thread(lab.make)
        await executor.start(later)
        await until(executor, later.attempt, A.SUCCEEDED)


@pytest.mark.whole
async def test_a_quota_of_the_clusters_that_refuses_the_object_fails_the_start(lab: KubeLab) -> None:
    lab("create", "quota", "none", "--hard=count/jobs.batch=0")
    lab("wait", "quota/none", "--for=jsonpath={.status.hard}", "--timeout=60s")
    spec = lab.spec("print('never')")

    async with lab.executing() as executor:
        await executor.start(spec)
        seen = await until(executor, spec.attempt, A.FAILED)
        assert seen.failure is not None
        assert seen.failure.cause is Cause.START_FAILED
        assert "the cluster refused its Job" in said(seen)
        assert "exceeded quota: none" in said(seen)
        await executor.start(spec)
        assert (await executor.observe([spec.attempt]))[spec.attempt] == seen


async def test_a_quota_that_refuses_pods_is_told_and_then_fails_the_start(
    lab: KubeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab("create", "quota", "none", "--hard=pods=0")
    lab("wait", "quota/none", "--for=jsonpath={.status.hard}", "--timeout=60s")
    monkeypatch.setattr(no_pods, "AGAIN_S", 0.5)
    spec = lab.spec("print('never')")

    async with lab.executing() as executor:
        await executor.start(spec)
        await waits(executor, spec, "exceeded quota: none")
        monkeypatch.setattr(no_pods, "QUOTA_S", 0.0)
        seen = await until(executor, spec.attempt, A.FAILED)
        assert "the cluster refused its pods" in said(seen)


async def test_pods_without_room_wait_with_a_reason_and_can_be_stopped(lab: KubeLab) -> None:
    spec = lab.spec("print('never')", per_worker=Resources(cpu=900_000, ram=128))

    async with lab.executing() as executor:
        await executor.start(spec)
        await waits(executor, spec, "Insufficient cpu")
        await executor.stop(spec.attempt, 5.0)
        seen = await until(executor, spec.attempt, A.STOPPED)
        assert [rank.state for rank in seen.ranks] == ["stopped"]


@pytest.mark.whole
async def test_a_node_that_has_gone_since_it_was_chosen_is_a_loss(lab: KubeLab) -> None:
    real = lab.nodes
    lab.nodes = (*real, replace(real[0], name="passing"))
    before, spec = lab.spec("print(1)"), lab.spec("print(2)", placement=("passing",))

    async with lab.executing() as executor:
        await executor.start(before)
        lab.nodes = real
        await executor.start(spec)
        seen = await until(executor, spec.attempt, A.LOST)
        assert "node passing has gone" in said(seen)
        with pytest.raises(CannotStart, match="elsewhere"):
            await executor.start(lab.spec("print(3)", placement=("elsewhere",)))


class Killed(BaseException):
    """The service ends here."""


class DyingClient(KubernetesClient):
    """A client whose process is killed before a request of its, or after it has been carried out."""

    dies_at, after = 0, False

    async def _ask(self, method: str, path: str, asked: str, **more: Any) -> Any:
        if method == "GET":
            return await super()._ask(method, path, asked, **more)
        self.dies_at -= 1
        if self.dies_at == 0 and not self.after:
            raise Killed
        found = await super()._ask(method, path, asked, **more)
        if self.dies_at == 0:
            raise Killed
        return found


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("request_number", [1, 2])
async def test_a_service_that_dies_at_a_request_of_a_start_starts_it_once(
    lab: KubeLab, request_number: int, *, after: bool
) -> None:
    spec = lab.spec("print('ran')")

    async with lab.executing() as executor:
        client = DyingClient(lab.configuration)
        client.dies_at, client.after = request_number, after
        dying = OwnClientExecutor(client, lab.at, lab.ways, lambda: lab.nodes)
        with pytest.raises(Killed):
            await dying.start(spec)
        await dying.close()
        assert client.dies_at == 0
        await executor.start(spec)
        await until(executor, spec.attempt, A.SUCCEEDED)
        await executor.forget(spec.attempt)
        await nothing_left(lab)
    assert lines(lab, spec) == ["ran"]


@pytest.mark.whole
async def test_services_that_come_and_go_end_nothing_that_runs(lab: KubeLab) -> None:
    specs = [lab.spec(LASTS, workers=2), lab.spec(LASTS)]

    async with lab.executing() as executor:
        for spec in specs:
            await executor.start(spec)
            await until(executor, spec.attempt, A.RUNNING)
        await executor.close()
        for _ in range(10):
            passing = lab.executor()
            await passing.open()
            seen = await passing.observe([spec.attempt for spec in specs])
            assert {each.phase for each in seen.values()} == {A.RUNNING}
            await passing.close()
            assert not any(key.startswith(("patch", "delete")) for key in passing._client.calls)


@pytest.mark.whole
async def test_a_service_that_dies_while_it_stops_an_attempt_has_stopped_it(lab: KubeLab) -> None:
    async with lab.executing() as executor:
        for number in (1, 2):  # a third one, for the pods, is spared where the cluster was quicker
            spec = lab.spec(LASTS)
            await executor.start(spec)
            await until(executor, spec.attempt, A.RUNNING)
            await executor.close()  # it would go on with what the other one has begun
            client = DyingClient(lab.configuration)
            client.dies_at, client.after = number, True
            dying = OwnClientExecutor(client, lab.at, lab.ways, lambda: lab.nodes)
            with pytest.raises(Killed):
                await dying.stop(spec.attempt, 5.0)
            await dying.close()
            seen = await until(executor, spec.attempt, A.STOPPED)
            assert seen.failure is None
            await executor.forget(spec.attempt)


async def test_a_job_costs_three_creations_and_one_deletion(
    lab: KubeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_executor, "ENDS_S", 60.0)  # a slow node's pods are not ended by us
    spec = lab.spec("print('ran')")

    async with lab.executing() as executor:
        executor._client.calls.clear()
        await executor.start(spec)
        await until(executor, spec.attempt, A.SUCCEEDED)
        await executor.forget(spec.attempt)
        # events are read where a node is slow; the epoch is read once for each process
        calls = {
            k: n for k, n in executor._client.calls.items() if not k.startswith(("watch", "list events"))
        }
        made = {"create configmaps": 1, "create secrets": 1, "create jobs": 1}
        assert calls == {**made, "delete configmaps": 1}, calls
        await nothing_left(lab)

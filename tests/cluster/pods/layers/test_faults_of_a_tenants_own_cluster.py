"""A tenant's own cluster that lies, is split off or has two agents, and an agent that is killed at any request: nothing twice, nothing left."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mlp_api.jobs.jobs import JobCreate
from mlp_cluster.place import Place
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from support.cluster.kube import Kube
from support.cluster.layer_rig import USER, LayerRig, layer_rig

Upper = tuple[Kube, Place]
LASTS = "import time; print('began'); time.sleep(600)"


def bound(rig: LayerRig, pod: dict[str, Any]) -> dict[str, Any]:
    """Return a pod that names the node itself: no scheduler above looks at it."""
    del pod["spec"]["nodeSelector"]
    pod["spec"]["nodeName"] = rig.node
    return pod


async def test_pods_that_break_out_are_refused_in_words(kube: Kube, upper: Upper, tmp_path: Path) -> None:
    async with layer_rig(kube, upper, tmp_path, cpu=3.0, ram=1024) as rig:
        await rig.start_until_ready()
        lies: dict[str, tuple[dict[str, Any], str]] = {
            "host": ({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, "hostPath"),
            "network": ({"hostNetwork": True}, "hostNetwork"),
            "pid": ({"hostPID": True}, "hostPID"),
            "privileged": ({"container": {"securityContext": {"privileged": True}}}, "privileged"),
            "root": ({"securityContext": {"runAsUser": 0, "runAsNonRoot": False}}, "runAsUser 0"),
            "claim": (
                {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "mlp-files"}}]},
                "claim",
            ),
            "large": ({"cpu": "64"}, "64"),
            "unsized": ({"container": {"resources": {}}}, "limits.memory"),
        }
        for name, (fields, _) in lies.items():
            await rig.apply(bound(rig, rig.pod(name, LASTS, **fields)))
        # labels and annotations of the hub are the upper cluster's own business
        about = {"labels": {"mlp-hub/user": "ann"}, "annotations": {"mlp-hub/user": "ann"}}
        await rig.apply(rig.pod("poses", LASTS, about=about))
        for name, (_, words) in lies.items():
            failed = await rig.until(name, "Failed")
            assert failed["status"]["reason"] == "Refused"
            assert words in failed["status"]["message"], name
        await rig.until("poses", "Running")
        jobs, _ = await rig.hub.platform.jobs.list(SYSTEM)
        assert {job.user for job in jobs} == {USER}
        assert len(await rig.pods()) == 1


async def test_many_pods_are_bounded_by_the_node(kube: Kube, upper: Upper, tmp_path: Path) -> None:
    async with layer_rig(kube, upper, tmp_path, cpu=6.0, ram=4096) as rig:
        rig.settings["max-pods"] = "4"
        await rig.start_until_ready()
        pods = [bound(rig, rig.pod(f"many-{n}", LASTS)) for n in range(60)]
        await rig.apply(*pods)

        async def running() -> bool:
            items = (await rig.get("pods"))["items"]
            return len([p for p in items if p["status"]["phase"] == "Running"]) == 4

        await rig.wait(running, "as many as the node takes")

        async def told() -> bool:
            items = (await rig.get("pods"))["items"]
            return any("at most 4 pods" in str(p["status"]) for p in items)

        await rig.wait(told, "the others to be told")
        assert len(await rig.jobs()) == 4
        assert rig.hub.held() == Resources(cpu=200, ram=256)


WRITES = (
    "create jobs",
    "delete jobs",
    "create secrets",
    "update secrets",
    "update pods",
    "delete pods",
    "create serviceaccounts",
)


@pytest.mark.parametrize("which", ["lower", "upper"])
async def test_an_agent_that_is_killed_at_any_write_is_continued(
    kube: Kube, upper: Upper, tmp_path: Path, which: str
) -> None:
    async with layer_rig(kube, upper, tmp_path, cpu=3.0, ram=1024) as rig:
        between = rig.stand_between(which)
        kills: list[str] = []
        most, armed = 6, [True]

        def strike(name: str, when: str) -> None:
            # at first before a write, then after it, and so on
            if (
                armed[0]
                and name in WRITES
                and len(kills) < most
                and when == ("before", "after")[len(kills) % 2]
            ):
                armed[0] = False
                kills.append(f"{when} {name}")
                rig.agents[-1].kill()

        between.on_call = strike

        async def follow(done: Any) -> None:
            """Start the agent whenever it was killed, until something holds."""

            async def look() -> bool:
                agent = rig.agents[-1] if rig.agents else None
                if agent is None or agent.poll() is not None:
                    if agent is not None:
                        await rig.kill(agent)
                    armed[0] = True
                    await rig.start()
                return bool(await done())

            await rig.wait(look, f"the pod, after {kills}")

        await rig.apply(bound(rig, rig.pod("one", LASTS)))

        async def runs() -> bool:
            return (await rig.get("pod/one"))["status"]["phase"] == "Running"

        await follow(runs)
        assert len(await rig.jobs()) == 1
        assert len(await rig.pods()) == 1
        first = len(kills)
        assert first >= 2, kills
        most = first + 4
        await rig.kubectl("-n", rig.namespace, "delete", "pod", "one", "--wait=false")

        async def gone() -> bool:
            return not (await rig.get("pods"))["items"] and not await rig.jobs() and not await rig.pods()

        await follow(gone)
        assert len(kills) > first, kills
        await rig.empty()
        assert between.calls["create jobs"] <= first + 1


async def test_an_upper_cluster_that_is_split_off_finds_its_pods_again(
    kube: Kube, upper: Upper, tmp_path: Path
) -> None:
    async with layer_rig(kube, upper, tmp_path, cpu=3.0, ram=1024) as rig:
        between = rig.stand_between("upper")
        agent = await rig.start_until_ready()
        ends = "import os, time\nwhile not os.path.exists('/tmp/go'): time.sleep(0.1)\nprint('ends')"
        await rig.apply(rig.pod("stays", LASTS), rig.pod("goes", LASTS), rig.pod("ends", ends))
        for name in ("stays", "goes", "ends"):
            await rig.until(name, "Running")
        before = {p["metadata"]["name"]: p["metadata"]["uid"] for p in await rig.pods()}
        assert len(before) == 3

        between.away = True
        assert await asyncio.to_thread(agent.wait, 120) != 0  # it has no lease, so it does nothing more
        blind = await rig.start()
        await rig.kubectl("-n", rig.namespace, "delete", "pod", "goes", "--force", "--grace-period=0")
        (end,) = [p for p in await rig.pods() if _is(rig, p, "ends", await rig.jobs())]
        await asyncio.to_thread(
            lambda: rig.hub.kube(
                "-n", rig.hub.namespace, "exec", end["metadata"]["name"], "--", "touch", "/tmp/go"
            )
        )

        async def over() -> bool:
            return any(p["status"]["phase"] == "Succeeded" for p in await rig.pods())

        await rig.wait(over, "a pod to end below meanwhile")
        assert {p["metadata"]["name"] for p in await rig.pods()} == set(
            before
        )  # nothing is removed on suspicion

        between.away = False
        if blind.poll() is not None:
            await rig.start()
        await rig.until("ends", "Succeeded")

        async def two() -> bool:
            return len(await rig.pods()) == 2

        await rig.wait(two, "the pod that was deleted meanwhile to go")
        assert (await rig.get("pod/stays"))["status"]["phase"] == "Running"
        assert {p["metadata"]["uid"] for p in await rig.pods()} <= set(before.values())


def _is(rig: LayerRig, pod: dict[str, Any], name: str, jobs: list[dict[str, Any]]) -> bool:
    """Whether a pod below is that of a pod above."""
    mine = f"{rig.namespace}/{name}/"
    of = {
        j["metadata"]["name"] for j in jobs if j["metadata"]["annotations"]["mlp-layer/pods"].startswith(mine)
    }
    return pod["metadata"]["labels"]["job-name"] in of


async def test_pods_wait_while_the_compute_cluster_is_away(kube: Kube, upper: Upper, tmp_path: Path) -> None:
    async with layer_rig(kube, upper, tmp_path, cpu=3.0, ram=1024) as rig:
        between = rig.stand_between("lower")
        await rig.start_until_ready()
        await rig.apply(rig.pod("old", LASTS))
        await rig.until("old", "Running")
        between.away = True
        await rig.apply(bound(rig, rig.pod("new", LASTS)))

        async def waits() -> bool:
            return "cannot go down yet" in str((await rig.get("pod/new"))["status"])

        await rig.wait(waits, "the pod above to say so")
        assert (await rig.get("pod/old"))["status"]["phase"] == "Running"
        between.away = False
        await rig.until("new", "Running")
        assert len(await rig.jobs()) == 2


async def test_of_two_agents_one_works_and_the_other_takes_over(
    kube: Kube, upper: Upper, tmp_path: Path
) -> None:
    async with layer_rig(kube, upper, tmp_path, cpu=3.0, ram=1024) as rig:
        first = await rig.start_until_ready()
        second = await rig.start()
        await rig.apply(rig.pod("one", LASTS))
        await rig.until("one", "Running")
        assert second.poll() is None
        assert "leads" not in (rig.folder / "agent-1.log").read_text()
        first.kill()
        first.wait()

        async def leads() -> bool:
            return "works" in (rig.folder / "agent-1.log").read_text()

        await rig.wait(leads, "the other to lead")
        await rig.apply(rig.pod("two", LASTS))
        await rig.until("two", "Running")
        assert len(await rig.jobs()) == 2
        await _ends(second)


async def _ends(agent: subprocess.Popen[bytes]) -> None:
    agent.terminate()
    assert await asyncio.to_thread(agent.wait, 120) == 0


async def test_an_agent_that_was_away_removes_what_is_gone(kube: Kube, upper: Upper, tmp_path: Path) -> None:
    async with layer_rig(kube, upper, tmp_path, cpu=3.0, ram=1024) as rig:
        agent = await rig.start_until_ready()
        await rig.apply(rig.pod("one", LASTS))
        await rig.until("one", "Running")
        await rig.kill(agent)
        await rig.kubectl("-n", rig.namespace, "delete", "pod", "one", "--force", "--grace-period=0")
        await rig.apply(rig.pod("one", LASTS))  # another of its name
        await rig.start()
        await rig.until("one", "Running")

        async def one() -> bool:
            return len(await rig.jobs()) == len(await rig.pods()) == 1

        await rig.wait(one, "the pod of the first to go")
        uid = (await rig.get("pod/one"))["metadata"]["uid"]
        assert uid in (await rig.jobs())[0]["metadata"]["annotations"]["mlp-layer/pods"]


async def test_ends_by_the_queue_are_ends_above(kube: Kube, upper: Upper, tmp_path: Path) -> None:
    async with layer_rig(kube, upper, tmp_path, cpu=1.0, ram=1024) as rig:
        await rig.start_until_ready()
        await rig.hub.platform.users.approve("ann", actor="admin")
        await rig.hub.platform.tenants.set_member("red", "ann")
        await rig.apply(rig.pod("cancelled", LASTS))
        await rig.until("cancelled", "Running")
        (job,) = await rig.jobs()
        await rig.hub.platform.jobs.cancel(SYSTEM, USER, job["metadata"]["labels"]["mlp-hub/job"])
        assert (await rig.until("cancelled", "Failed"))["status"]["reason"] == "Cancelled"

        await rig.apply(rig.pod("preempted", LASTS, cpu="200m"))
        await rig.until("preempted", "Running")
        urgent = JobCreate(
            name="urgent",
            code="import time; time.sleep(600)",
            cpu=0.9,
            ram=128,
            tenant="red",
            priority="high",
        )
        await rig.hub.platform.jobs.submit("ann", urgent)
        assert (await rig.until("preempted", "Failed"))["status"]["reason"] == "Preempted"
        await rig.hub.until("urgent", "running")
        assert await rig.jobs() == [] or all(j["metadata"].get("deletionTimestamp") for j in await rig.jobs())

"""What only simulated nodes can do: virtual time and lost nodes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from mlp_hub.domain.resources import Resources
from mlp_hub.domain.runtime.runtime import BUILT_IN
from mlp_hub.executors.base import AttemptPhase, Code, LaunchSpec
from mlp_hub.executors.nodes import NodeInfo, Taint
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.executors.simulated.executor import SimulatedExecutor

ROOM = Resources(8000, 0, 8192)
NOWHERE = Directories(Path("/nowhere"), Path("/nowhere"))


def launch(name: str, env: dict[str, str], **more: Any) -> LaunchSpec:
    workers = more.pop("workers", 1)
    fields: dict[str, Any] = {
        "attempt": name,
        "job": name.partition(".")[0],
        "run": 1,
        "user": "ann",
        "uid": None,
        "tenant": "default",
        "runtime": BUILT_IN["plain"],
        "workers": workers,
        "ps": 0,
        "per_worker": Resources(1000, 0, 100),
        "placement": ("here",) * workers,
        "program": Code("x"),
        "args": (),
        "env": env,
    }
    return LaunchSpec(**{**fields, **more})


async def test_in_virtual_time_an_attempt_ends_when_the_clock_says_so() -> None:
    now = 100.0
    executor = SimulatedExecutor([NodeInfo("here", ROOM, ROOM)], lambda: now, NOWHERE, real_time=False)
    told: list[str] = []
    executor.on_change(told.append)
    await executor.start(launch("a.0", {"SIM_DURATION": "50", "SIM_START": "5"}))
    phases = []
    for now in (101.0, 106.0, 154.9, 155.0):  # noqa: B007 - the executor's clock reads it
        executor.tick()
        phases.append((await executor.observe(["a.0"]))["a.0"].phase)
    assert phases == [
        AttemptPhase.STARTING,
        AttemptPhase.RUNNING,
        AttemptPhase.RUNNING,
        AttemptPhase.SUCCEEDED,
    ]
    assert told == ["a.0", "a.0"]
    await executor.close()


async def test_a_lost_node_takes_its_attempts_along() -> None:
    executor = SimulatedExecutor([NodeInfo("here", ROOM, ROOM)], time.time, NOWHERE)
    await executor.start(launch("a.0", {"SIM_DURATION": "50"}))
    executor.lose_node("here")
    assert (await executor.observe(["a.0"]))["a.0"].phase is AttemptPhase.LOST
    assert [n.ready for n in executor.nodes()] == [False]
    executor.restore_node("here")
    assert [n.ready for n in executor.nodes()] == [True]
    await executor.close()


async def test_listeners_are_notified_when_nodes_change() -> None:
    here = NodeInfo("here", ROOM, ROOM)
    executor = SimulatedExecutor([here], time.time, NOWHERE)
    told: list[list[tuple[str, bool, bool]]] = []
    executor.on_nodes(lambda: told.append([(n.name, n.ready, n.takes("red")) for n in executor.nodes()]))
    executor.set_node(NodeInfo("there", ROOM, ROOM))
    executor.cordon("here")
    executor.taint("there", Taint("tenant", "blue"))
    executor.lose_node("there")
    executor.remove_node("here")
    assert told == [
        [("here", True, True), ("there", True, True)],
        [("here", True, False), ("there", True, True)],
        [("here", True, False), ("there", True, False)],
        [("here", True, False), ("there", False, False)],
        [("there", False, False)],
    ]
    await executor.close()


async def test_a_forgotten_attempt_is_never_started_again() -> None:
    executor = SimulatedExecutor([NodeInfo("here", ROOM, ROOM)], time.time, NOWHERE)
    spec = launch("a.0", {"SIM_DURATION": "50"})
    await executor.start(spec)
    await executor.forget("a.0")
    await executor.start(spec)
    assert executor.starts == ["a.0"]
    assert (await executor.observe(["a.0"]))["a.0"].phase is AttemptPhase.ABSENT
    await executor.close()

"""Urgent work stops work of lower priority, which goes back into the queue and comes back."""

from __future__ import annotations

from pathlib import Path

from mlp_hub.domain.resources import ZERO
from platform_rig import Rig, play


def test_an_urgent_job_stops_a_lesser_one_which_starts_again_afterwards(tmp_path: Path) -> None:
    async def story(rig: Rig) -> None:
        low = await rig.submit("low", workers=4, priority="low", sim={"DURATION": 1.0, "STOP": 0.1})
        await rig.until("low", "running")
        await rig.submit("urgent", workers=3, priority="high", sim={"DURATION": 0.2})
        waiting = await rig.until("low", "preempting", "queued")
        assert waiting.restarts in (0, 1)
        await rig.until("urgent", "running")
        assert rig.held().cpu == 3000
        assert (await rig.until("low", "queued")).queued_at == low.queued_at
        await rig.until("urgent", "finished")
        again = await rig.until("low", "finished")
        assert again.restarts == 1
        assert rig.held() == ZERO
        told = await rig.platform.jobs.events("ann", "low")
        stopped = next(e for e in told if e.kind == "preempted")
        assert stopped.message.startswith(
            "stopped to make room for urgent of ann in default: its priority is 200"
        )
        kinds = [e.kind for e in await rig.platform.jobs.events("ann", "urgent")]
        assert kinds[:2] == ["submitted", "waiting"]
        why = [e for e in await rig.platform.jobs.events("ann", "urgent") if e.kind == "waiting"]
        assert why[0].message == "first in its queue: starts as soon as job low of ann has ended"
        assert [e.reason for e in why] == ["WaitingForPreempted"]

    play(tmp_path, story)


def test_equal_work_is_never_stopped(tmp_path: Path) -> None:
    async def story(rig: Rig) -> None:
        await rig.submit("first", workers=4, sim={"DURATION": 0.5})
        await rig.until("first", "running")
        await rig.submit("second", workers=4, sim={"DURATION": 0.1})
        done = await rig.until("second", "finished")
        first = await rig.until("first", "finished")
        assert (first.restarts, done.restarts) == (0, 0)

    play(tmp_path, story)

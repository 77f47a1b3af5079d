"""Urgent work stops work of lower priority, which goes back into the queue and comes back."""

from __future__ import annotations

from pathlib import Path

from mlp_hub.domain.job import Target
from mlp_hub.domain.resources import ZERO
from platform_rig import Rig, play, until


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


def test_nobody_escapes_by_stopping_and_resuming_before_being_asked_to_leave(tmp_path: Path) -> None:
    async def story(rig: Rig) -> None:
        low = await rig.submit("low", workers=4, priority="low", sim={"DURATION": 60, "STOP": 0.05})
        await rig.until("low", "running")
        look_at = rig.platform.reconciler.look_at
        rig.platform.reconciler.look_at = (  # the turn that would stop it comes late
            lambda u, delay=0.0: None if u == low.uid else look_at(u, delay)
        )
        await rig.submit("urgent", workers=3, priority="high", sim={"DURATION": 0.2})

        async def told() -> bool:
            return rig.platform.board.jobs[low.uid].target is Target.PREEMPT

        await until(told)
        await rig.platform.jobs.suspend("ann", "low")
        await rig.platform.jobs.resume("ann", "low")
        rig.platform.reconciler.look_at = look_at
        look_at(low.uid)
        await rig.until("urgent", "finished")
        await rig.platform.jobs.cancel("ann", "low")
        await rig.until("low", "cancelled")
        assert rig.held() == ZERO

    play(tmp_path, story)

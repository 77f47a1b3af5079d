"""What every executor promises of epochs: an older hub changes nothing any more."""

from __future__ import annotations

import asyncio

import pytest

from mlp_hub.domain.errors import Unavailable
from mlp_hub.executors.base import AttemptPhase, Superseded
from support.executors.contract import Contract


class TestEpochs(Contract):
    async def test_requests_of_an_older_epoch_are_refused_and_change_nothing(self) -> None:
        async with self.executing(epoch=7) as executor:
            runs, never, ended = self.attempt("lasts"), self.attempt("lasts"), self.attempt("succeeds")
            await executor.start(runs, 4)
            await executor.start(ended, 4)
            before = await self.wait(executor, runs.attempt, AttemptPhase.RUNNING)
            await self.wait(executor, ended.attempt, AttemptPhase.SUCCEEDED)
            await executor.fence(6, 10.0)
            assert await executor.epoch() == 6
            for act in (
                lambda: executor.start(never, 4),
                lambda: executor.start(runs, 5),
                lambda: executor.stop(runs.attempt, 0.0, 5),
                lambda: executor.forget(runs.attempt, 4),
                lambda: executor.forget(ended.attempt, 4),
                lambda: executor.stop(runs.attempt, 0.0),
                lambda: executor.fence(5, 10.0),
            ):
                with pytest.raises(Superseded):
                    await act()
            with pytest.raises(Superseded):
                await executor.workspace.erase(runs.of_run, 5, lambda: None)
            seen = await executor.observe([runs.attempt, never.attempt, ended.attempt])
            assert seen[runs.attempt].phase is AttemptPhase.RUNNING
            assert seen[runs.attempt].started_at == before.started_at
            assert seen[never.attempt].phase is AttemptPhase.ABSENT
            assert seen[ended.attempt].phase is AttemptPhase.SUCCEEDED
            assert sorted(await executor.known()) == sorted([runs.attempt, ended.attempt])
            await executor.stop(runs.attempt, 5.0, 6)
            await self.wait(executor, runs.attempt, AttemptPhase.STOPPED)
            await executor.forget(runs.attempt, 6)
            await executor.forget(ended.attempt, 7)  # a newer one that was not announced counts too
            with pytest.raises(Superseded):
                await executor.start(never, 6)

    async def test_an_attempt_that_a_newer_epoch_removed_is_not_begun_again_by_an_older_one(self) -> None:
        async with self.executing(epoch=2) as executor:
            spec = self.attempt("lasts")
            await executor.start(spec, 1)
            await executor.forget(spec.attempt, 2)
            with pytest.raises(Superseded):
                await executor.start(spec, 1)
            assert await executor.known() == []

    async def test_a_new_epoch_begins_only_when_no_act_of_an_older_one_is_in_progress(self) -> None:
        async with self.executing(epoch=2) as executor:
            with self.under.an_act(executor, 1):
                with pytest.raises(Unavailable, match="without progress"):
                    await executor.fence(2, 0.05)
                with pytest.raises(Superseded):  # it is refused already, although the newer one has not begun
                    await executor.stop("nobody.0", 0.0, 1)
                begun = asyncio.ensure_future(executor.fence(2, 30.0))
                await asyncio.sleep(0.05)
                assert not begun.done()
            await begun
            with self.under.an_act(executor, 2):  # acts of one epoch overlap
                await executor.stop("nobody.0", 0.0, 2)

    async def test_the_highest_epoch_is_known_after_a_restart(self) -> None:
        async with self.executing(epoch=41) as executor:
            assert await executor.epoch() == 0
            await executor.fence(41, 10.0)
            second = self.make_executor()
            try:
                assert await second.epoch() == 41
                with pytest.raises(Superseded):
                    await second.start(self.attempt("succeeds"), 40)
            finally:
                await second.close()

"""What every executor must do. A test class of an executor derives from `ExecutorContract`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import pytest

from mlp_hub.domain.errors import Unavailable
from mlp_hub.domain.job import Cause
from mlp_hub.executors.base import AttemptPhase, CannotStart, Executor, LaunchSpec, LogLine, Observation
from mlp_hub.executors.fence import Superseded

ENDED = (AttemptPhase.SUCCEEDED, AttemptPhase.FAILED, AttemptPhase.STOPPED, AttemptPhase.LOST)


def roles(seen: Observation) -> tuple[str, ...]:
    return tuple(rank.role for rank in seen.ranks)


class ExecutorContract:
    """Derived classes say how to make an executor and attempts of a few kinds."""

    def make_executor(self) -> Executor:
        """Return an executor; called again it must be as after a restart of the hub, on the same state."""
        raise NotImplementedError

    def attempt(self, kind: str, **more: Any) -> LaunchSpec:
        """Return a new attempt of one of these kinds, `more` being fields of its `LaunchSpec`.

        `succeeds` (and writes two lines or more), `fails` (rank 0 with exit status 3), `dies` (rank 0 of signal 9),
        `lasts` (until stopped).
        """
        raise NotImplementedError

    def execute(self, test: Callable[[Executor], Awaitable[None]], *, epoch: int = 0) -> None:
        """Run a test on an executor of its own; what it leaves is removed under the epoch."""

        async def go() -> None:
            executor = self.make_executor()
            try:
                await test(executor)
            finally:
                for attempt in await executor.known():
                    await executor.forget(attempt, epoch)
                await executor.close()

        asyncio.run(go())

    async def wait(self, executor: Executor, attempt: str, *phases: AttemptPhase) -> Observation:
        """Wait until the attempt is in one of the phases."""
        seen = None
        for _ in range(6000):
            seen = (await executor.observe([attempt]))[attempt]
            if seen.phase in phases:
                return seen
            assert seen.phase not in ENDED, f"waited for {phases}, got {seen}"
            await asyncio.sleep(0.005)
        raise AssertionError(f"waited for {phases}, got {seen}")

    def test_an_attempt_that_was_never_started_is_absent(self) -> None:
        async def test(executor: Executor) -> None:
            seen = await executor.observe(["nobody.0"])
            assert seen["nobody.0"].phase is AttemptPhase.ABSENT
            assert await executor.known() == []

        self.execute(test)

    def test_a_good_program_runs_and_succeeds(self) -> None:
        async def test(executor: Executor) -> None:
            spec = self.attempt("succeeds")
            await executor.start(spec)
            assert list(await executor.known()) == [spec.attempt]
            seen = await self.wait(executor, spec.attempt, AttemptPhase.SUCCEEDED)
            assert seen.failure is None
            assert seen.started_at is not None
            assert seen.finished_at is not None
            assert seen.started_at <= seen.finished_at
            assert [(r.rank, r.state, r.exit_code) for r in seen.ranks] == [(0, "finished", 0)]

        self.execute(test)

    def test_a_failing_rank_fails_the_attempt_and_is_named(self) -> None:
        async def test(executor: Executor) -> None:
            spec = self.attempt("fails")
            await executor.start(spec)
            seen = await self.wait(executor, spec.attempt, AttemptPhase.FAILED)
            assert seen.failure is not None
            assert seen.failure.cause is Cause.PROGRAM_ERROR
            assert (seen.failure.rank, seen.failure.exit_code) == (0, 3)

        self.execute(test)

    def test_a_rank_that_a_signal_killed_is_named_with_the_signal(self) -> None:
        async def test(executor: Executor) -> None:
            spec = self.attempt("dies")
            await executor.start(spec)
            seen = await self.wait(executor, spec.attempt, AttemptPhase.FAILED)
            assert seen.failure is not None
            assert seen.failure.cause is Cause.SIGNAL
            assert (seen.failure.rank, seen.failure.signal, seen.failure.exit_code) == (0, 9, None)
            assert [(r.state, r.signal, r.exit_code) for r in seen.ranks] == [("failed", 9, None)]

        self.execute(test)

    def test_what_can_never_start_says_so_for_good(self) -> None:
        async def test(executor: Executor) -> None:
            spec = self.attempt("succeeds", placement=("elsewhere",))
            for _ in range(2):
                try:
                    await executor.start(spec)
                except CannotStart as error:
                    message = str(error)
                    seen = (await executor.observe([spec.attempt]))[spec.attempt]
                    assert seen.phase is AttemptPhase.ABSENT
                else:
                    seen = await self.wait(executor, spec.attempt, AttemptPhase.FAILED)
                    assert seen.failure is not None
                    assert seen.failure.cause is Cause.START_FAILED
                    message = seen.failure.message
                assert "elsewhere" in message
                assert executor.nodes()[0].name in message  # the way out

        self.execute(test)

    def test_roles_are_the_same_from_the_start_to_the_end(self) -> None:
        async def test(executor: Executor) -> None:
            node = executor.nodes()[0].name
            spec = self.attempt("lasts", runtime="tf", workers=2, ps=1, placement=(node,) * 3)
            told = set()
            await executor.start(spec)
            told.add(roles((await executor.observe([spec.attempt]))[spec.attempt]))
            told.add(roles(await self.wait(executor, spec.attempt, AttemptPhase.RUNNING)))
            await executor.stop(spec.attempt, 5.0)
            told.add(roles(await self.wait(executor, spec.attempt, AttemptPhase.STOPPED)))
            assert told == {("chief", "worker", "ps")}

        self.execute(test)

    def test_a_log_is_read_from_a_cursor_on_and_outlives_the_attempt(self) -> None:
        async def test(executor: Executor) -> None:
            spec = self.attempt("succeeds")
            assert executor.read_log(spec.workspace, 0).lines == ()
            await executor.start(spec)
            await self.wait(executor, spec.attempt, AttemptPhase.SUCCEEDED)
            whole = executor.read_log(spec.workspace, 0)
            assert len(whole.lines) >= 2
            assert {line.stream for line in whole.lines} == {"stdout"}
            assert all(datetime.fromisoformat(line.time).tzinfo is not None for line in whole.lines)
            at, found = 0, []
            while (chunk := executor.read_log(spec.workspace, 0, at, 1)).lines:
                assert len(chunk.lines) == 1
                at = chunk.offset
                found += chunk.lines
            assert (tuple(found), at) == (whole.lines, whole.offset)
            assert executor.read_log(spec.workspace, 0, at).offset == at
            last = executor.tail_log(spec.workspace, 0, 1)
            assert (last.lines, last.offset) == (whole.lines[-1:], whole.offset)
            assert executor.tail_log(spec.workspace, 0, 1000).lines == whole.lines
            assert executor.read_log(spec.workspace, 7).lines == ()  # there is no such rank
            await executor.forget(spec.attempt)
            assert executor.read_log(spec.workspace, 0) == whole

        self.execute(test)

    def test_a_log_is_followed_by_rank(self) -> None:
        async def test(executor: Executor) -> None:
            spec = self.attempt("succeeds", workers=2)
            found: dict[int, list[LogLine]] = {0: [], 1: []}
            await executor.start(spec)
            async for chunk in executor.follow(spec.workspace, 2):
                found[chunk.rank] += chunk.lines
                if all(len(lines) >= 2 for lines in found.values()):
                    break
            await self.wait(executor, spec.attempt, AttemptPhase.SUCCEEDED)
            for rank, lines in found.items():
                assert tuple(lines) == executor.read_log(spec.workspace, rank).lines[: len(lines)]

        self.execute(test)

    def test_every_rank_is_observed_on_its_node(self) -> None:
        async def test(executor: Executor) -> None:
            spec = self.attempt("lasts", workers=2)
            await executor.start(spec)
            while True:
                seen = await self.wait(executor, spec.attempt, AttemptPhase.STARTING, AttemptPhase.RUNNING)
                if [r.state for r in seen.ranks] == ["running", "running"]:
                    break
                await asyncio.sleep(0.01)
            node = executor.nodes()[0].name
            assert [(r.rank, r.node) for r in seen.ranks] == [(0, node), (1, node)]

        self.execute(test)

    def test_starting_again_changes_nothing(self) -> None:
        async def test(executor: Executor) -> None:
            spec = self.attempt("succeeds")
            await executor.start(spec)
            first = await self.wait(executor, spec.attempt, AttemptPhase.SUCCEEDED)
            await executor.start(spec)
            again = (await executor.observe([spec.attempt]))[spec.attempt]
            assert (again.phase, again.started_at) == (AttemptPhase.SUCCEEDED, first.started_at)

        self.execute(test)

    def test_starting_at_the_same_time_starts_once(self) -> None:
        async def test(executor: Executor) -> None:
            spec = self.attempt("succeeds")
            await asyncio.gather(*(executor.start(spec) for _ in range(5)))
            await self.wait(executor, spec.attempt, AttemptPhase.SUCCEEDED)
            assert list(await executor.known()) == [spec.attempt]

        self.execute(test)

    def test_stop_ends_it_as_stopped(self) -> None:
        async def test(executor: Executor) -> None:
            spec = self.attempt("lasts")
            await executor.start(spec)
            await self.wait(executor, spec.attempt, AttemptPhase.RUNNING)
            await executor.stop(spec.attempt, 5.0)
            await executor.stop(spec.attempt, 5.0)
            seen = await self.wait(executor, spec.attempt, AttemptPhase.STOPPED)
            assert seen.failure is None

        self.execute(test)

    def test_ranks_that_were_asked_to_stop_are_stopped_and_not_failed(self) -> None:
        async def test(executor: Executor) -> None:
            spec = self.attempt("lasts", workers=2)
            await executor.start(spec)
            seen = await self.wait(executor, spec.attempt, AttemptPhase.RUNNING)
            while [rank.state for rank in seen.ranks] != ["running"] * 2:
                await asyncio.sleep(0.01)
                seen = await self.wait(executor, spec.attempt, AttemptPhase.RUNNING)
            await executor.stop(spec.attempt, 5.0)
            seen = await self.wait(executor, spec.attempt, AttemptPhase.STOPPED)
            assert [(r.state, r.exit_code, r.signal) for r in seen.ranks] == [("stopped", None, 15)] * 2

        self.execute(test)

    def test_stop_right_after_start_ends_it_too(self) -> None:
        async def test(executor: Executor) -> None:
            spec = self.attempt("lasts", workers=2)
            await executor.start(spec)
            await executor.stop(spec.attempt, 1.0)
            seen = await self.wait(executor, spec.attempt, AttemptPhase.STOPPED)
            assert {rank.state for rank in seen.ranks} <= {"stopped"}, seen.ranks  # none is left pending

        self.execute(test)

    def test_stopping_what_does_not_run_is_no_error(self) -> None:
        async def test(executor: Executor) -> None:
            await executor.stop("nobody.0", 1.0)
            spec = self.attempt("succeeds")
            await executor.start(spec)
            await self.wait(executor, spec.attempt, AttemptPhase.SUCCEEDED)
            await executor.stop(spec.attempt, 1.0)
            seen = (await executor.observe([spec.attempt]))[spec.attempt]
            assert seen.phase is AttemptPhase.SUCCEEDED

        self.execute(test)

    def test_the_time_limit_ends_it_with_its_own_cause(self) -> None:
        async def test(executor: Executor) -> None:
            spec = self.attempt("lasts", time_limit=0.3, grace_s=1.0)
            await executor.start(spec)
            seen = await self.wait(executor, spec.attempt, AttemptPhase.FAILED)
            assert seen.failure is not None
            assert seen.failure.cause is Cause.TIME_LIMIT

        self.execute(test)

    def test_what_is_forgotten_is_absent(self) -> None:
        async def test(executor: Executor) -> None:
            spec = self.attempt("lasts")
            await executor.start(spec)
            await self.wait(executor, spec.attempt, AttemptPhase.RUNNING)
            await executor.forget(spec.attempt)
            await executor.forget(spec.attempt)
            assert await executor.known() == []
            seen = await executor.observe([spec.attempt])
            assert seen[spec.attempt].phase is AttemptPhase.ABSENT

        self.execute(test)

    def test_changes_are_told(self) -> None:
        async def test(executor: Executor) -> None:
            told: list[str] = []
            executor.on_change(told.append)
            spec = self.attempt("succeeds")
            await executor.start(spec)
            while (await executor.observe([spec.attempt]))[spec.attempt].phase is not AttemptPhase.SUCCEEDED:
                before = len(told)
                for _ in range(2000):  # no news, no look
                    if len(told) > before:
                        break
                    await asyncio.sleep(0.005)
                else:
                    pytest.fail("nothing was told for 10 s")
            assert set(told) == {spec.attempt}

        self.execute(test)

    def test_another_executor_on_the_same_state_finds_what_runs_and_what_ended(self) -> None:
        async def test(executor: Executor) -> None:
            running, ended = self.attempt("lasts"), self.attempt("succeeds")
            await executor.start(running)
            await executor.start(ended)
            await self.wait(executor, ended.attempt, AttemptPhase.SUCCEEDED)
            before = await self.wait(executor, running.attempt, AttemptPhase.RUNNING)
            await executor.close()
            second = self.make_executor()
            try:
                assert sorted(await second.known()) == sorted([running.attempt, ended.attempt])
                await second.start(running)
                seen = await second.observe([running.attempt, ended.attempt])
                assert seen[ended.attempt].phase is AttemptPhase.SUCCEEDED
                assert seen[running.attempt].phase is AttemptPhase.RUNNING
                assert seen[running.attempt].started_at == before.started_at
                await second.stop(running.attempt, 5.0)
                await self.wait(second, running.attempt, AttemptPhase.STOPPED)
            finally:
                await second.close()

        self.execute(test)

    def test_what_an_older_epoch_asks_for_is_refused_and_changes_nothing(self) -> None:
        async def test(executor: Executor) -> None:
            runs, never, ended = self.attempt("lasts"), self.attempt("lasts"), self.attempt("succeeds")
            await executor.start(runs, 4)
            await executor.start(ended, 4)
            before = await self.wait(executor, runs.attempt, AttemptPhase.RUNNING)
            await self.wait(executor, ended.attempt, AttemptPhase.SUCCEEDED)
            await executor.fence(6, 10.0)
            assert executor.epoch() == 6
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
            with pytest.raises(Superseded), executor.acting(5):
                pytest.fail("an older epoch may act")
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

        self.execute(test, epoch=7)

    def test_an_attempt_that_a_newer_epoch_removed_is_not_begun_again_by_an_older_one(self) -> None:
        async def test(executor: Executor) -> None:
            spec = self.attempt("lasts")
            await executor.start(spec, 1)
            await executor.forget(spec.attempt, 2)
            with pytest.raises(Superseded):
                await executor.start(spec, 1)
            assert await executor.known() == []

        self.execute(test, epoch=2)

    def test_a_new_epoch_begins_only_when_nothing_of_an_older_one_is_under_way(self) -> None:
        async def test(executor: Executor) -> None:
            with executor.acting(1):
                with pytest.raises(Unavailable, match="does not go on"):
                    await executor.fence(2, 0.05)
                with pytest.raises(Superseded):  # it is refused already, although the newer one has not begun
                    await executor.stop("nobody.0", 0.0, 1)
                begun = asyncio.ensure_future(executor.fence(2, 30.0))
                await asyncio.sleep(0.05)
                assert not begun.done()
            await begun
            with executor.acting(2):  # acts of one epoch overlap
                await executor.stop("nobody.0", 0.0, 2)

        self.execute(test, epoch=2)

    def test_the_highest_epoch_is_known_after_a_restart(self) -> None:
        async def test(executor: Executor) -> None:
            assert executor.epoch() == 0
            await executor.fence(41, 10.0)
            second = self.make_executor()
            try:
                assert second.epoch() == 41
                with pytest.raises(Superseded):
                    await second.start(self.attempt("succeeds"), 40)
            finally:
                await second.close()

        self.execute(test, epoch=41)

    def test_nodes_have_room(self) -> None:
        async def test(executor: Executor) -> None:
            for node in executor.nodes():
                assert node.name
                assert node.capacity.cpu > 0
                assert node.capacity.ram > 0

        self.execute(test)

"""What every executor promises of attempts: how they start, end and are found again."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from mlp_hub.domain.jobs.job import Cause
from mlp_hub.domain.runtime.runtime import BUILT_IN
from mlp_hub.executors.base import AttemptPhase, CannotStart, Observation
from support.executors.contract import Contract


def roles(seen: Observation) -> tuple[str, ...]:
    return tuple(rank.role for rank in seen.ranks)


class TestAttempts(Contract):
    async def test_an_attempt_that_was_never_started_is_absent(self) -> None:
        async with self.executing() as executor:
            seen = await executor.observe(["nobody.0"])
            assert seen["nobody.0"].phase is AttemptPhase.ABSENT
            assert await executor.known() == []

    async def test_a_good_program_runs_and_succeeds(self) -> None:
        async with self.executing() as executor:
            spec = self.attempt("succeeds")
            await executor.start(spec)
            assert list(await executor.known()) == [spec.attempt]
            seen = await self.wait(executor, spec.attempt, AttemptPhase.SUCCEEDED)
            assert seen.failure is None
            assert seen.started_at is not None
            assert seen.finished_at is not None
            assert seen.started_at <= seen.finished_at
            assert [(r.rank, r.state, r.exit_code) for r in seen.ranks] == [(0, "finished", 0)]

    async def test_the_work_of_an_attempt_is_of_one_that_runs(self) -> None:
        async with self.executing() as executor:
            spec = self.attempt("lasts")
            await executor.start(spec)
            await self.wait(executor, spec.attempt, AttemptPhase.RUNNING)
            found = await executor.work_of([spec.attempt, "nobody.0"])
            assert list(found) == [spec.attempt]
            assert found[spec.attempt].gpu is None, "it has none"
            await executor.stop(spec.attempt, 0.0)
            await self.wait(executor, spec.attempt, AttemptPhase.STOPPED)

    async def test_a_failing_rank_fails_the_attempt_and_is_named(self) -> None:
        async with self.executing() as executor:
            spec = self.attempt("fails")
            await executor.start(spec)
            seen = await self.wait(executor, spec.attempt, AttemptPhase.FAILED)
            assert seen.failure is not None
            assert seen.failure.cause is Cause.PROGRAM_ERROR
            assert (seen.failure.rank, seen.failure.exit_code) == (0, 3)

    async def test_a_rank_that_a_signal_killed_is_named_with_the_signal(self) -> None:
        async with self.executing() as executor:
            spec = self.attempt("dies")
            await executor.start(spec)
            seen = await self.wait(executor, spec.attempt, AttemptPhase.FAILED)
            assert seen.failure is not None
            assert seen.failure.cause is Cause.SIGNAL
            assert (seen.failure.rank, seen.failure.signal, seen.failure.exit_code) == (0, 9, None)
            assert [(r.state, r.signal, r.exit_code) for r in seen.ranks] == [("failed", 9, None)]

    async def test_an_attempt_that_can_never_start_reports_it_permanently(self) -> None:
        async with self.executing() as executor:
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

    async def test_roles_are_the_same_from_the_start_to_the_end(self) -> None:
        async with self.executing() as executor:
            node = executor.nodes()[0].name
            spec = self.attempt("lasts", runtime=BUILT_IN["tf"], workers=2, ps=1, placement=(node,) * 3)
            told = set()
            await executor.start(spec)
            told.add(roles((await executor.observe([spec.attempt]))[spec.attempt]))
            told.add(roles(await self.wait(executor, spec.attempt, AttemptPhase.RUNNING)))
            await executor.stop(spec.attempt, 5.0)
            told.add(roles(await self.wait(executor, spec.attempt, AttemptPhase.STOPPED)))
            assert told == {("chief", "worker", "ps")}

    async def test_every_rank_is_observed_on_its_node(self) -> None:
        async with self.executing() as executor:
            spec = self.attempt("lasts", workers=2)
            await executor.start(spec)
            while True:
                seen = await self.wait(executor, spec.attempt, AttemptPhase.STARTING, AttemptPhase.RUNNING)
                if [r.state for r in seen.ranks] == ["running", "running"]:
                    break
                await asyncio.sleep(0.01)
            node = executor.nodes()[0].name
            assert [(r.rank, r.node) for r in seen.ranks] == [(0, node), (1, node)]

    async def test_starting_again_changes_nothing(self) -> None:
        async with self.executing() as executor:
            spec = self.attempt("succeeds")
            await executor.start(spec)
            first = await self.wait(executor, spec.attempt, AttemptPhase.SUCCEEDED)
            await executor.start(spec)
            again = (await executor.observe([spec.attempt]))[spec.attempt]
            assert (again.phase, again.started_at) == (AttemptPhase.SUCCEEDED, first.started_at)

    async def test_starting_at_the_same_time_starts_once(self) -> None:
        async with self.executing() as executor:
            spec = self.attempt("succeeds")
            await asyncio.gather(*(executor.start(spec) for _ in range(5)))
            await self.wait(executor, spec.attempt, AttemptPhase.SUCCEEDED)
            assert list(await executor.known()) == [spec.attempt]

    async def test_stop_ends_it_as_stopped(self) -> None:
        async with self.executing() as executor:
            spec = self.attempt("lasts")
            await executor.start(spec)
            await self.wait(executor, spec.attempt, AttemptPhase.RUNNING)
            await executor.stop(spec.attempt, 5.0)
            await executor.stop(spec.attempt, 5.0)
            seen = await self.wait(executor, spec.attempt, AttemptPhase.STOPPED)
            assert seen.failure is None

    async def test_a_killed_attempt_is_stopped_and_not_forgotten(self) -> None:
        async with self.executing() as executor:
            spec = self.attempt("lasts")
            await executor.kill("nobody.0")
            await executor.start(spec)
            await self.wait(executor, spec.attempt, AttemptPhase.RUNNING)
            await executor.kill(spec.attempt)
            await executor.kill(spec.attempt)
            seen = await self.wait(executor, spec.attempt, AttemptPhase.STOPPED)
            assert seen.failure is None
            assert list(await executor.known()) == [spec.attempt]
            await executor.kill(spec.attempt)
            assert (await executor.observe([spec.attempt]))[spec.attempt].phase is AttemptPhase.STOPPED

    async def test_ranks_that_were_asked_to_stop_are_stopped_and_not_failed(self) -> None:
        async with self.executing() as executor:
            spec = self.attempt("lasts", workers=2)
            await executor.start(spec)
            seen = await self.wait(executor, spec.attempt, AttemptPhase.RUNNING)
            while [rank.state for rank in seen.ranks] != ["running"] * 2:
                await asyncio.sleep(0.01)
                seen = await self.wait(executor, spec.attempt, AttemptPhase.RUNNING)
            await executor.stop(spec.attempt, 5.0)
            seen = await self.wait(executor, spec.attempt, AttemptPhase.STOPPED)
            assert [(r.state, r.exit_code, r.signal) for r in seen.ranks] == [("stopped", None, 15)] * 2

    async def test_stop_right_after_start_ends_it_too(self) -> None:
        async with self.executing() as executor:
            spec = self.attempt("lasts", workers=2)
            await executor.start(spec)
            await executor.stop(spec.attempt, 1.0)
            seen = await self.wait(executor, spec.attempt, AttemptPhase.STOPPED)
            assert {rank.state for rank in seen.ranks} <= {"stopped"}, seen.ranks  # none is left pending

    async def test_stopping_an_attempt_that_does_not_run_is_not_an_error(self) -> None:
        async with self.executing() as executor:
            await executor.stop("nobody.0", 1.0)
            spec = self.attempt("succeeds")
            await executor.start(spec)
            await self.wait(executor, spec.attempt, AttemptPhase.SUCCEEDED)
            await executor.stop(spec.attempt, 1.0)
            seen = (await executor.observe([spec.attempt]))[spec.attempt]
            assert seen.phase is AttemptPhase.SUCCEEDED

    async def test_the_time_limit_ends_it_with_its_own_cause(self) -> None:
        async with self.executing() as executor:
            spec = self.attempt("lasts", time_limit=0.3, grace_s=1.0)
            await executor.start(spec)
            seen = await self.wait(executor, spec.attempt, AttemptPhase.FAILED)
            assert seen.failure is not None
            assert seen.failure.cause is Cause.TIME_LIMIT

    async def test_a_time_limit_that_is_changed_counts_from_the_start(self) -> None:
        async with self.executing() as executor:
            if not executor.limits:
                return  # what runs in a pod keeps its own; the hub refuses to change it
            await executor.limit("nobody.0", 1.0)
            spec = self.attempt("lasts", time_limit=600.0, grace_s=1.0)
            await executor.start(spec)
            await self.wait(executor, spec.attempt, AttemptPhase.RUNNING)
            await executor.limit(spec.attempt, None)
            await executor.limit(spec.attempt, 0.2)
            seen = await self.wait(executor, spec.attempt, AttemptPhase.FAILED)
            assert seen.failure is not None
            assert seen.failure.cause is Cause.TIME_LIMIT
            assert "0.2 s" in seen.failure.message
            await executor.limit(spec.attempt, 100.0)  # what is over stays over
            assert (await executor.observe([spec.attempt]))[spec.attempt].phase is AttemptPhase.FAILED

    async def test_a_forgotten_attempt_is_absent(self) -> None:
        async with self.executing() as executor:
            spec = self.attempt("lasts")
            await executor.start(spec)
            await self.wait(executor, spec.attempt, AttemptPhase.RUNNING)
            await executor.forget(spec.attempt)
            await executor.forget(spec.attempt)
            assert await executor.known() == []
            seen = await executor.observe([spec.attempt])
            assert seen[spec.attempt].phase is AttemptPhase.ABSENT

    async def test_changes_are_told(self) -> None:
        async with self.executing() as executor:
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

    async def test_another_executor_on_the_same_state_finds_what_runs_and_what_ended(self) -> None:
        async with self.executing() as executor:
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

    async def test_nodes_have_room(self) -> None:
        async with self.executing() as executor:
            for node in executor.nodes():
                assert node.name
                assert node.allocatable.cpu > 0
                assert node.allocatable.ram > 0
                assert node.takes("anybody")
            assert executor.nodes() is executor.nodes()  # a view: looking at it makes nothing

    async def test_an_attempt_that_does_not_end_when_asked_is_killed_after_the_grace(self) -> None:
        async with self.executing() as executor:
            spec = self.attempt("stays")
            await executor.start(spec)
            await self.wait(executor, spec.attempt, AttemptPhase.RUNNING)
            async with aclosing(executor.follow_log(spec.key, {0: 0})) as written:
                await anext(written)
            await executor.stop(spec.attempt, 0.2)
            seen = await self.wait(executor, spec.attempt, AttemptPhase.STOPPED)
            assert {rank.state for rank in seen.ranks} == {"stopped"}

    async def test_collecting_twice_or_what_was_never_started_changes_nothing(self) -> None:
        async with self.executing() as executor:
            spec, never = self.attempt("succeeds"), self.attempt("succeeds")
            await executor.start(spec)
            await self.wait(executor, spec.attempt, AttemptPhase.SUCCEEDED)
            before = await executor.read_log(spec.key, 0)
            for _ in range(2):
                await executor.collect(spec.key)
                await executor.collect(never.key)
            assert await executor.read_log(spec.key, 0) == before
            assert list(await executor.known()) == [spec.attempt]

"""What every executor promises of logs."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import datetime
from functools import partial

from mlp_hub.executors.base import AttemptPhase, LogLine
from support.executors.contract import Contract


class TestLogs(Contract):
    async def test_a_log_is_read_from_a_cursor_on_and_outlives_the_attempt(self) -> None:
        async with self.executing() as executor:
            spec = self.attempt("succeeds")
            read = partial(executor.read_log, spec.key)
            tail = partial(executor.tail_log, spec.key, 0)
            assert (await read(0)).lines == ()
            await executor.start(spec)
            await self.wait(executor, spec.attempt, AttemptPhase.SUCCEEDED)
            whole = await read(0)
            assert len(whole.lines) >= 2
            assert {line.stream for line in whole.lines} == {"stdout"}
            assert all(datetime.fromisoformat(line.time).tzinfo is not None for line in whole.lines)
            at, found = 0, []
            while (chunk := await read(0, at, 1)).lines:
                assert len(chunk.lines) == 1
                at = chunk.offset
                found += chunk.lines
            assert (tuple(found), at) == (whole.lines, whole.offset)
            assert (await read(0, at)).offset == at
            last = await tail(1)
            assert (last.lines, last.offset) == (whole.lines[-1:], whole.offset)
            assert (await tail(1000)).lines == whole.lines
            assert (await read(7)).lines == ()  # there is no such rank
            await executor.forget(spec.attempt)
            assert await read(0) == whole

    async def test_new_lines_of_all_ranks_are_read_from_cursors_in_one_call(self) -> None:
        async with self.executing() as executor:
            spec = self.attempt("succeeds", workers=2)
            assert list(await executor.read_new(spec.key, {0: 0, 1: 0})) == []
            found: dict[int, list[LogLine]] = {0: [], 1: []}
            cursors = {0: 0, 1: 0}
            await executor.start(spec)
            while not all(len(lines) >= 2 for lines in found.values()):
                for chunk in await executor.read_new(spec.key, cursors, 1):
                    assert len(chunk.lines) == 1
                    found[chunk.rank] += chunk.lines
                    cursors[chunk.rank] = chunk.offset
                await asyncio.sleep(0.01)
            await self.wait(executor, spec.attempt, AttemptPhase.SUCCEEDED)
            for rank, lines in found.items():
                end = cursors[rank]
                before = await executor.read_log(spec.key, rank, until=end)
                assert (before.lines, before.offset) == (tuple(lines), end)
                last = await executor.tail_log(spec.key, rank, 1, end)
                assert (last.lines, last.offset) == (tuple(lines[-1:]), end)

    async def test_a_log_is_followed_by_attempt_and_rank_as_it_is_written(self) -> None:
        async with self.executing() as executor:
            spec, other = self.attempt("succeeds", workers=2), self.attempt("succeeds")
            found: dict[int, list[LogLine]] = {0: [], 1: []}
            followed = executor.follow_log(spec.key, {0: 0, 1: 0})
            await executor.start(other)
            await self.wait(executor, other.attempt, AttemptPhase.SUCCEEDED)
            await executor.start(spec)
            async with aclosing(followed) as news:
                async for chunks in news:
                    for chunk in chunks:
                        found[chunk.rank] += chunk.lines
                    if all(len(lines) >= 2 for lines in found.values()):
                        break
            await self.wait(executor, spec.attempt, AttemptPhase.SUCCEEDED)
            for rank, lines in found.items():
                assert (await executor.read_log(spec.key, rank)).lines == tuple(lines)

    async def test_the_log_of_an_attempt_continues_where_the_previous_attempt_ended(self) -> None:
        async with self.executing() as executor:
            first = self.attempt("succeeds")
            again = self.attempt("succeeds", attempt="again.1", job=first.job)
            other_run = self.attempt("succeeds", attempt="other.0", job=first.job, run=2)
            await executor.start(first)
            await self.wait(executor, first.attempt, AttemptPhase.SUCCEEDED)
            before = await executor.read_log(first.key, 0)
            await executor.collect(first.key)
            await executor.forget(first.attempt)
            assert await executor.read_log(again.key, 0) == before
            await executor.start(again)
            await self.wait(executor, again.attempt, AttemptPhase.SUCCEEDED)
            new = await executor.read_log(again.key, 0, before.offset)
            assert len(new.lines) >= 2
            whole = await executor.read_log(again.key, 0)
            assert whole.lines == before.lines + new.lines
            assert (await executor.read_log(other_run.key, 0)).lines == ()

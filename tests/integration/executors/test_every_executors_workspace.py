"""What every executor promises of the files of users and of runs: its workspace."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import pytest

from mlp_hub.domain.errors import Refused
from mlp_hub.executors.base import AttemptPhase
from mlp_hub.executors.workspace import FoundEntry, StoredPlace
from mlp_hub.safe_path import PathKind
from support.executors.contract import Contract


def _known(numbers: Mapping[str, int] | None = None) -> Callable[[], Awaitable[Mapping[str, int]]]:
    """Return what tells the highest numbers of sources that are stored."""

    async def known() -> Mapping[str, int]:
        return numbers or {}

    return known


class TestWorkspace(Contract):
    async def test_a_script_is_found_below_its_users_home_and_nowhere_else(self) -> None:
        async with self.executing() as executor:
            await asyncio.to_thread(self.under.put_at_home, "ann", "code/train.py", "print(1)")
            for entry in ("code/train.py", "~/code/train.py", "/home/ann/code/train.py"):
                found = await executor.workspace.find_entry("ann", entry)
                assert found == FoundEntry("code/train.py", PathKind.FILE)
            kinds = [
                (await executor.workspace.find_entry("ann", e)).kind for e in ("code", "no.py", "../bob")
            ]
            assert kinds == [PathKind.DIRECTORY, PathKind.MISSING, PathKind.OUTSIDE]
            assert (await executor.workspace.find_entry("bob", "code/train.py")).kind is PathKind.MISSING

    async def test_the_results_of_a_run_are_read_and_then_erased_with_its_directory(self) -> None:
        async with self.executing() as executor:
            workspace, spec = executor.workspace, self.attempt("succeeds")
            assert await workspace.newest_checkpoint(spec.of_run) is None
            assert [batch async for batch in workspace.spooled(spec.of_run, _known())] == []
            await executor.start(spec)
            await self.wait(executor, spec.attempt, AttemptPhase.SUCCEEDED)
            lines = "".join(f'{{"n": {n}, "t": 1.0, "v": {{"loss": {n}}}}}\n' for n in (1, 2, 3))
            await asyncio.to_thread(self.under.put_in_run, spec.of_run, "metrics/0.0.a.jsonl", lines)
            await asyncio.to_thread(self.under.put_in_run, spec.of_run, "ckpt/model", "weights")
            await executor.collect(spec.key)
            await executor.forget(spec.attempt)
            batches = [batch async for batch in workspace.spooled(spec.of_run, _known({"0.0.a": 1}))]
            assert [(s, p.n, p.v) for b in batches for s, points in b.lot for p in points] == [
                ("0.0.a", 2, {"loss": 2}),
                ("0.0.a", 3, {"loss": 3}),
            ]
            assert await workspace.newest_checkpoint(spec.of_run) is not None
            sizes = await workspace.sizes({spec.of_run: 0.0}, hurry=True)
            assert sizes.done[spec.of_run].used > 0
            assert all(0 < space.free <= space.total for space in (await workspace.spaces()).values())
            for _ in range(2):
                await workspace.erase(spec.of_run, 0, lambda: None)
            assert await workspace.newest_checkpoint(spec.of_run) is None
            assert [batch async for batch in workspace.spooled(spec.of_run, _known())] == []

    async def test_a_stored_object_has_its_directory_once_it_is_placed(self) -> None:
        async with self.executing() as executor:
            workspace, place = executor.workspace, StoredPlace("dataset", "ann", "pets", "default")
            for _ in range(2):
                await workspace.place(place, None, epoch=0)
                assert (await workspace.files(place, "", "", 10)).entries == []
            await workspace.erase_stored(place, 0, lambda: None)
            with pytest.raises(Refused):
                await workspace.files(place, "", "", 10)

    async def test_an_erasure_that_may_not_continue_leaves_the_rest(self) -> None:
        async with self.executing() as executor:
            spec = self.attempt("succeeds")
            await executor.start(spec)
            await self.wait(executor, spec.attempt, AttemptPhase.SUCCEEDED)
            await asyncio.to_thread(self.under.put_in_run, spec.of_run, "ckpt/model", "weights")

            def check_cancelled() -> None:
                raise InterruptedError

            with pytest.raises(InterruptedError):
                await executor.workspace.erase(spec.of_run, 0, check_cancelled)
            assert await executor.workspace.newest_checkpoint(spec.of_run) is not None

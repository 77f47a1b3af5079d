"""Items that are asked for one by one are done in lots."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from mlp_hub.service.support.batching import MOST, Batch


async def test_items_that_arrive_during_one_batch_form_the_next() -> None:
    lots: list[list[int]] = []

    async def work(items: Sequence[int]) -> Sequence[int | Exception]:
        lots.append([*items])
        await asyncio.sleep(0.01)
        return [ValueError("odd") if i % 2 else i * 10 for i in items]

    batch: Batch[int, int] = Batch(work)
    first = asyncio.ensure_future(batch.submit_item(0))
    await asyncio.sleep(0.002)
    others = [asyncio.ensure_future(batch.submit_item(i)) for i in (1, 2)]
    assert await first == 0
    with pytest.raises(ValueError, match="odd"):
        await others[0]
    assert await others[1] == 20
    assert lots == [[0], [1, 2]]


async def test_an_exception_of_the_work_reaches_all_callers_and_the_next_batch_still_runs() -> None:
    broken = True

    async def work(items: Sequence[int]) -> Sequence[int | Exception]:
        if broken:
            raise OSError("the disk is full")
        return list(items)

    batch: Batch[int, int] = Batch(work)
    for failed in await asyncio.gather(batch.submit_item(1), batch.submit_item(2), return_exceptions=True):
        assert isinstance(failed, OSError)
    broken = False
    assert await batch.submit_item(3) == 3


async def test_a_caller_that_goes_away_does_not_take_its_item_back_and_no_lot_is_too_large() -> None:
    done: list[int] = []
    sizes: list[int] = []

    async def work(items: Sequence[int]) -> Sequence[int | Exception]:
        await asyncio.sleep(0.001)
        done.extend(items)
        sizes.append(len(items))
        return list(items)

    batch: Batch[int, int] = Batch(work)
    gone = asyncio.ensure_future(batch.submit_item(-1))
    await asyncio.sleep(0)
    gone.cancel()
    assert sum(await asyncio.gather(*(batch.submit_item(i) for i in range(MOST + 10)))) == sum(
        range(MOST + 10)
    )
    assert -1 in done
    assert max(sizes) <= MOST

"""An error that many have in common, as where what they wrote together could not be stored, ends none of those that go on."""

from __future__ import annotations

import asyncio

from mlp_hub.api.edge.exchange import _let_go
from mlp_hub.store.errors import StoreUnavailable
from mlp_language.message import msg
from support.waiting import PATIENCE_S


async def test_a_request_that_handled_a_shared_error_leaves_the_others_alone() -> None:
    loop = asyncio.get_running_loop()
    of_request, of_loop = loop.create_future(), loop.create_future()
    answered, waited = asyncio.Event(), asyncio.Event()
    went_on: list[bool] = []

    async def request() -> None:
        try:
            await of_request
        except StoreUnavailable as error:
            await asyncio.sleep(0)  # it is told to whoever asked
            _let_go(error)
            answered.set()

    async def check_cancelled() -> None:
        try:
            await of_loop
        except StoreUnavailable:
            await waited.wait()  # it tries again later, as a renewal of the lease does
        went_on.append(True)

    tasks = [loop.create_task(request()), loop.create_task(check_cancelled())]
    await asyncio.sleep(0)
    error = StoreUnavailable(msg("no answer came"))
    for future in (of_request, of_loop):
        future.set_exception(error)
    await answered.wait()
    waited.set()
    await asyncio.wait(tasks, timeout=PATIENCE_S)  # one that was ended so may never be done
    assert went_on == [True]

"""Amounts that ended servers still hold, because the service was away or the hub died: given back later."""

from __future__ import annotations

import asyncio
from typing import Any

from jupyterhub import orm

from mlp_spawner.errors import ServiceUnreachable
from mlp_spawner.quota.holding import NOTHING, ServerHolding
from mlp_spawner.quota.service_client import ServiceClient

STATE = "quota"
"""Where the state of a server in the hub's database says what it may hold."""
LOOK_EVERY_S = 10.0
paying = asyncio.Lock()
"""Lock during a late payment, which a new hold waits for.

Otherwise a late payment could give back the amount of a new start.
"""
_tasks: set[asyncio.Task[None]] = set()


def key_of(user: str, server: str) -> str:
    """Name a server in the ledger."""
    return f"{user}/{server}"


def settle_later(db: Any, service: ServiceClient, log: Any) -> None:
    """Give back, once the service answers again, what ended servers still hold."""
    if not any(not task.done() for task in _tasks):
        task = asyncio.get_running_loop().create_task(settle(db, service, log))
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)


async def settle(db: Any, service: ServiceClient, log: Any) -> None:
    """Look until nothing is owed any more."""
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        owing = [row for row in db.query(orm.Spawner) if _owes(row)]
        if not owing:
            return
        try:
            for row in owing:
                async with paying:
                    if _owes(row):
                        await _pay(db, row, service, log)
        except ServiceUnreachable:
            continue


def _owes(row: Any) -> bool:
    # one that starts or runs has a place on the proxy; what it holds is its own
    return row.server is None and bool((row.state or {}).get(STATE))


async def _pay(db: Any, row: Any, service: ServiceClient, log: Any) -> None:
    def note() -> None:
        row.state = {**row.state, STATE: holding.step}
        db.commit()

    holding = ServerHolding(key_of(row.user.name, row.name), service, note, row.state[STATE])
    await holding.give_back()
    if holding.step == NOTHING:
        log.info("Gave back what the ended server %s held", holding.key)

"""A process that works on the ledger until it is killed, and tells each step once it was answered.

python hammer.py URL ROUND WORKERS
"""

from __future__ import annotations

import asyncio
import random
import sys
import time

from mlp_api import types as api
from mlp_hub.domain.errors import Refused
from mlp_hub.domain.resources import Resources
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.service.quota.ledger import Ledger
from mlp_hub.store import Database

NODE = Resources(cpu=100_000)


async def worker(ledger: Ledger, name: str) -> None:
    i = 0
    while True:
        i += 1
        key = api.ResourceRequestKey(id=f"{name}.{i}", applier="jm")
        asked = {"id": key.id, "applier": "jm", "tenant": "red"}
        try:
            await ledger.try_(api.ResourceRequestTry(request_type="request", cpu=1, **asked))
            tell("tried", key.id)
            await ledger.confirm(key)
            tell("confirmed", key.id)
            await asyncio.sleep(random.random() * 0.01)
            await ledger.try_(api.ResourceRequestTry(request_type="release", **asked))
            tell("releasing", key.id)
            await ledger.confirm(key)
            tell("released", key.id)
        except Refused:
            await asyncio.sleep(0.002)


def tell(step: str, request_id: str) -> None:
    sys.stdout.write(f"{request_id} {step}\n")
    sys.stdout.flush()


async def main(url: str, number: str, workers: int) -> None:
    db = Database(url, guard=True)
    ledger = Ledger(db, time.time, lambda: [NodeInfo("n", NODE, NODE)])
    await asyncio.gather(*(worker(ledger, f"{number}.{w}") for w in range(workers)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))

"""What a cluster says against attempts is asked for once for all of a namespace that wait."""

from __future__ import annotations

import asyncio
from typing import Any

from mlp_hub.executors.kubernetes.no_pods import APART_S, EventsOfNamespaces
from mlp_hub.kubernetes.client import Listed


class Asked:
    """A cluster that counts who asks, and says each time something else."""

    def __init__(self) -> None:
        self.count = 0

    async def list(self, _kind: object, namespace: str, **_: Any) -> Listed:
        self.count += 1
        count = self.count
        await asyncio.sleep(0)
        return Listed([{"metadata": {"name": f"{namespace}-{count}"}}], "1")


async def test_all_waiting_attempts_share_an_answer_that_is_not_older_than_the_request() -> None:
    cluster = Asked()
    events = EventsOfNamespaces(cluster)  # type: ignore[arg-type]
    first = await asyncio.gather(*(events.since("a", 10.0, 10.0) for _ in range(50)))
    assert cluster.count == 1
    assert all(each == first[0] for each in first)
    # who began to wait later gets no old answer, and asks anew only a while after the last question
    assert await events.since("a", 10.5, 10.0 + APART_S - 0.1) is None
    assert cluster.count == 1
    again = await events.since("a", 10.5, 10.0 + APART_S)
    assert again is not None
    assert again != first[0]
    assert await events.since("b", 10.5, 10.5)
    assert cluster.count == 3

"""Real use of a cluster's nodes, as its metrics API has it: processors and memory."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Sequence

from mlp_hub.executors.node_use import NodeUse
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.errors import ClusterError, ClusterUnreachable, ForbiddenError, MissingObjectError
from mlp_hub.kubernetes.kinds import NODE_METRICS
from mlp_hub.kubernetes.quantities import milli, whole

log = logging.getLogger(__name__)
PATH = NODE_METRICS.path()
"""Given: path of the use of all nodes, where a cluster has a metrics server."""
EVERY_S = 15.0
"""Tuning: seconds between two requests: a metrics server measures each 15 s; requests, for how late a use is seen."""
ABSENT_S = 300.0
"""Tuning: seconds until the next request after an answer that the hub may not ask, or that nothing measures."""
WAIT_S = 0.5
"""Tuning: seconds that a caller waits for an answer: longer ones serve the next caller; the first one, for a fast scrape."""
ANSWER_S = 10.0
"""Safety: seconds after which a request without an answer is given up."""
MIB = 2**20
"""Given: bytes of the unit of a node's memory."""


class NodeMeter:
    """Use of nodes, requested when somebody asks for it, and then each 15 s at most."""

    def __init__(
        self,
        client: KubernetesClient,
        nodes: Callable[[], Sequence[NodeInfo]],
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._nodes, self._steady = client, nodes, steady
        self._found: Sequence[NodeUse] | None = None
        self._due = float("-inf")
        self._asking: asyncio.Task[None] | None = None

    async def read(self) -> Sequence[NodeUse]:
        """Return the last known use; empty where the cluster does not measure it. Raises `OSError` where it does not answer."""
        if self._asking is None and self._steady() >= self._due:
            self._asking = asyncio.create_task(self._ask(), name="use of nodes")
        if self._asking is not None:
            await asyncio.wait({self._asking}, timeout=WAIT_S)
        if self._found is None:
            raise ConnectionError("the cluster's metrics API does not answer now")
        return self._found

    def known(self) -> Sequence[NodeUse]:
        """Return the use that somebody has asked for lately, without a request."""
        return self._found or () if self._steady() < self._due else ()

    async def close(self) -> None:
        """Ask no more."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    async def _ask(self) -> None:
        again = EVERY_S
        try:
            async with asyncio.timeout(ANSWER_S):
                self._found = self._uses(await self._client.read(PATH))
        except (ForbiddenError, MissingObjectError) as error:
            self._found, again = (), ABSENT_S
            log.info("the use of nodes is not measured: %s", error)
        except (ClusterError, ClusterUnreachable, TimeoutError, ValueError) as error:
            self._found = None  # an old use would hide that nobody measures
            log.debug("the use of nodes is not known now: %s", error)
        finally:
            self._due = self._steady() + again
            self._asking = None

    def _uses(self, answer: bytes) -> Sequence[NodeUse]:
        """Read an answer; raises `ValueError` where it is none. Entries that cannot be read are left out."""
        found = json.loads(answer)
        items = found.get("items") if isinstance(found, dict) else None
        if not isinstance(items, list):
            raise ValueError("the metrics API answers with something other than a list")  # noqa: TRY004 - of a value
        sizes = {node.name: node.capacity.ram * MIB for node in self._nodes()}
        uses = []
        for item in items:
            try:
                name, used = item["metadata"]["name"], item["usage"]
                total = sizes[name]
                free = max(0, total - whole(used["memory"]))
                uses.append(
                    NodeUse(name, cpu=milli(used["cpu"]) / 1000, memory_total=total, memory_available=free)
                )
            except (KeyError, TypeError, ValueError):
                continue  # a node that has just come or gone, or an entry of another version
        return uses

"""Separation of one service's and the next one's work in a cluster.

The highest epoch is in a ConfigMap that changes only from the version that was read. A process
looks at its copy of it, which a watch keeps up to date, so that an act costs no call.

The promise is weaker than on one machine. A superseded service learns so as soon as its watch does,
within milliseconds. Without a connection it can do nothing either. A request of it that is on its
way at that moment is still carried out: the API has no deadline after which it would refuse the
request. Only its answer is not awaited any more. A service that begins with a newer epoch waits for
acts in its process, and then lists the existing objects. It can miss an object of such a late
request. That object is one more attempt that it sees later, and it removes or adopts it as any
other.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator

from mlp_hub.domain.errors import Unavailable
from mlp_hub.executors.base import Superseded
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.errors import ConflictingObjectError, MissingObjectError
from mlp_hub.kubernetes.kinds import CONFIG_MAPS, NAMESPACES, Object
from mlp_hub.kubernetes.reflector import Reflector, Selection
from mlp_hub.loops import ask_loop
from mlp_language.message import msg

_LOOK_S = 0.01
"""Tuning: seconds between two looks at acts in progress: processor time, for the delay of waiting calls."""


class ClusterFence:
    """The highest epoch seen in a cluster, and who acts. `name` is that of the ConfigMap that holds it."""

    def __init__(self, client: KubernetesClient, namespace: str, name: str) -> None:
        self._client, self._namespace, self._name = client, namespace, name
        self._highest = 0
        self._acts: Counter[int] = Counter()
        self._mutex = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        chosen = Selection(CONFIG_MAPS, namespace, fields=f"metadata.name={name}")
        self.copy = Reflector(client, chosen, self._learn)

    async def read(self) -> int:
        """Ask the cluster for the highest epoch that was ever seen; 0 for none."""
        found = await self._client.get(CONFIG_MAPS, self._name, self._namespace)
        return self._learn(found) if found is not None else 0

    async def raise_to(self, epoch: int, wait_s: float) -> None:
        """Refuse acts under older epochs from now on; return once this process has none in progress.

        Raises `Superseded` where a newer one was seen, and `Unavailable` where an act takes longer than
        `wait_s` seconds.
        """
        await self._record(epoch)
        end = time.monotonic() + wait_s
        while any(self._acts[each] for each in list(self._acts) if each < epoch):
            if time.monotonic() >= end:
                raise Unavailable(
                    msg(
                        "another part of the hub is still starting, ending or removing something, without progress; end its process if it hangs"
                    )
                )
            await asyncio.sleep(_LOOK_S)

    @contextlib.asynccontextmanager
    async def act(self, epoch: int) -> AsyncIterator[None]:
        """Act under this epoch. Raises `Superseded` where a newer one was seen."""
        self._loop = asyncio.get_running_loop()
        if epoch > self._highest:
            await self._record(epoch)
        with self.under_way(epoch):
            yield

    @contextlib.contextmanager
    def acting(self, epoch: int) -> Iterator[None]:
        """Act under this epoch, in a thread beside the event loop."""
        if epoch > self._highest and self._loop is not None:
            ask_loop(self._loop, lambda: self._record(epoch), None)
        with self.under_way(epoch):
            yield

    @contextlib.contextmanager
    def under_way(self, epoch: int) -> Iterator[None]:
        """Count an act of this process; the cluster is not asked."""
        with self._mutex:
            if epoch < self._highest:
                raise Superseded
            self._acts[epoch] += 1
        try:
            yield
        finally:
            with self._mutex:
                self._acts[epoch] -= 1

    def begin(self) -> None:
        """Note the event loop on which the cluster is asked."""
        self._loop = asyncio.get_running_loop()

    def _learn(self, found: Object) -> int:
        stored = int((found.get("data") or {}).get("epoch") or 0)
        with self._mutex:
            self._highest = max(self._highest, stored)
        return stored

    async def _record(self, epoch: int) -> None:
        """Have at least this epoch in the cluster. Raises `Superseded` where it has a newer one."""
        while True:
            found = await self._client.get(CONFIG_MAPS, self._name, self._namespace)
            seen = self._learn(found) if found is not None else 0
            if seen > epoch:
                raise Superseded
            if seen == epoch and found is not None:
                return
            if await self._write(epoch, found):
                with self._mutex:
                    self._highest = max(self._highest, epoch)
                return

    async def _write(self, epoch: int, before: Object | None) -> bool:
        """Write it unless somebody else has meanwhile."""
        data = {"epoch": str(epoch)}
        if before is None:
            wanted = CONFIG_MAPS.named(self._name, self._namespace, data=data)
            try:
                return await self._client.create(wanted, CONFIG_MAPS) is not None
            except MissingObjectError:  # the hub's own namespace: nobody else makes it
                await self._client.create(NAMESPACES.named(self._namespace), NAMESPACES)
                return False
        meta = {"resourceVersion": before["metadata"]["resourceVersion"]}
        try:
            await self._client.patch(
                CONFIG_MAPS, self._name, {"metadata": meta, "data": data}, self._namespace
            )
        except (ConflictingObjectError, MissingObjectError):
            return False
        return True

"""Copy of the cluster's objects that a watch keeps up to date, so that frequent reads cost one request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from mlp_hub.domain.errors import MessageError
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.errors import ClusterUnreachable, ExpiredWatchError
from mlp_hub.kubernetes.kinds import Kind, Object, name_of, namespace_of
from mlp_language.message import msg

log = logging.getLogger(__name__)
T = TypeVar("T")
Key = tuple[str, str]
"""Namespace, which may be empty, and name."""
_SLOW = msg("it is slow")
FIRST_WAIT_S, LONGEST_WAIT_S = 0.2, 10.0
"""Tuning: seconds until the API is asked again, at first and at most: early notice, for the requests."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a kind: those of a namespace or of all, by labels and fields; or their `metadata` alone."""

    kind: Kind
    namespace: str | None = None
    labels: str = ""
    fields: str = ""
    metadata: bool = False


class Reflector(Generic[T]):
    """Results of `keep` for each of the selected objects, as the cluster has them; `objects` costs nothing.

    `keep` can return None for an object without interest. `changed` is called on the event loop with
    the key, the old result and the new one. After an outage it is called for each object that differs.
    Failed requests are repeated for ever: `trouble` is the reason, for health checks, and `recovered`
    is called once that is over.
    """

    def __init__(
        self,
        client: KubernetesClient,
        selection: Selection,
        keep: Callable[[Object], T | None],
        changed: Callable[[Key, T | None, T | None], None] = lambda _key, _before, _now: None,
        recovered: Callable[[], None] = lambda: None,
    ) -> None:
        self._recovered = recovered
        self._client, self._selection, self._keep, self._changed = client, selection, keep, changed
        self._objects: dict[Key, T] = {}
        self._synced = asyncio.Event()
        self._written: dict[Key, int] = {}
        self._deleted: set[str] = set()
        self._asked: list[asyncio.Future[None]] = []
        self._watching: asyncio.Future[None] | None = None
        self.trouble: MessageError | None = None

    @property
    def objects(self) -> Mapping[Key, T]:
        """Known results now."""
        return self._objects

    async def synced(self, seconds: float | None = None) -> None:
        """Return once all was listed for the first time; after `seconds` seconds raise the error that blocks it."""
        if not self._synced.is_set():
            await self._in_time(self._synced.wait(), seconds)

    def unsync(self) -> None:
        """Have `synced` wait for a new list, where `run` begins again."""
        self._synced.clear()

    def learn(self, found: Object) -> None:
        """Take in an object as this process has just written it, ahead of the watch; older news of it are passed over."""
        key = _key(found)
        self._written[key] = _version(found)
        self._put(key, self._keep(found))

    def unlearn(self, key: Key, uid: str) -> None:
        """Take in that this process has just deleted an object, ahead of the watch."""
        self._deleted.add(uid)
        self._put(key, None)

    async def refresh(self, seconds: float | None = None) -> None:
        """List all again; return once all objects that existed before this call are known. Raises as `synced`."""
        done = asyncio.get_running_loop().create_future()
        self._asked.append(done)
        if self._watching is not None:
            self._watching.cancel()
        await self._in_time(done, seconds)

    async def _in_time(self, awaited: Awaitable[object], seconds: float | None) -> None:
        try:
            async with asyncio.timeout(seconds):
                await awaited
        except TimeoutError:
            raise self.trouble or ClusterUnreachable(self._client.host, str(_SLOW)) from None

    async def run(self) -> None:
        """Keep up, until cancelled."""
        wait_s = FIRST_WAIT_S
        while True:
            try:
                version = await self._list()
                wait_s = FIRST_WAIT_S
                self._is_well()
                await self._watch_until_asked(version)
            except ExpiredWatchError:
                continue
            except Exception as error:  # noqa: BLE001 - whatever it is, the copy must not stand still unseen
                self._report_error(error)
                await asyncio.sleep(wait_s)
                wait_s = min(LONGEST_WAIT_S, wait_s * 2)

    async def _list(self) -> str:
        of, asked = self._selection, len(self._asked)
        listed = await self._client.list(
            of.kind, of.namespace, labels=of.labels, fields=of.fields, metadata=of.metadata
        )
        found = {_key(each): each for each in listed.items}
        newer = {key for key, written in self._written.items() if written > int(listed.version)}
        self._written = {key: self._written[key] for key in newer}
        for key in [key for key in self._objects if key not in found and key not in newer]:
            self._put(key, None)
        for key, each in found.items():
            self._take(key, each, gone=False)
        self._deleted.intersection_update(each["metadata"]["uid"] for each in listed.items)
        self._synced.set()
        for done in self._asked[:asked]:
            if not done.done():
                done.set_result(None)
        del self._asked[:asked]
        return listed.version

    async def _watch_until_asked(self, version: str) -> None:
        """Watch until a refresh is asked for."""
        if self._asked:
            return
        self._watching = asyncio.ensure_future(self._watch(version))
        try:
            await asyncio.wait([self._watching])
        finally:
            watching, self._watching = self._watching, None
            watching.cancel()
            await asyncio.wait([watching])
        if not watching.cancelled():
            watching.result()

    async def _watch(self, version: str) -> None:
        """Follow from a version on, repeatedly; after a break of the connection, continue from the last version."""
        of, wait_s = self._selection, FIRST_WAIT_S
        while True:
            heard = False
            try:
                async for event in self._client.watch(
                    of.kind, version, of.namespace, labels=of.labels, fields=of.fields, metadata=of.metadata
                ):
                    self._is_well()
                    version = event.object["metadata"]["resourceVersion"]
                    if event.type == "OPENED":
                        continue
                    heard, wait_s = True, FIRST_WAIT_S
                    if event.type != "BOOKMARK":
                        self._take(_key(event.object), event.object, gone=event.type == "DELETED")
            except ClusterUnreachable as error:
                self._report_error(error)
            if not heard:
                await asyncio.sleep(wait_s)
                wait_s = min(LONGEST_WAIT_S, wait_s * 2)

    def _is_well(self) -> None:
        if self.trouble is not None:
            self.trouble = None
            self._recovered()

    def _report_error(self, error: Exception) -> None:
        """Remember why it is not kept up, and log it where that is news."""
        known, plural = isinstance(error, MessageError), self._selection.kind.plural
        if self.trouble is None:
            log.warning("%s: %s", plural, error, exc_info=not known)
        if not isinstance(error, MessageError):
            said = msg("{kind} of the cluster are not up to date: {error}", kind=plural, error=repr(error))
            error = MessageError(said)
        self.trouble = error

    def _take(self, key: Key, found: Object, *, gone: bool) -> None:
        """Take in news, unless this process knows better."""
        if key in self._written:
            if _version(found) < self._written[key]:
                return
            del self._written[key]
        uid = found["metadata"]["uid"]
        if uid not in self._deleted:
            self._put(key, None if gone else self._keep(found))
        elif gone:
            self._deleted.discard(uid)

    def _put(self, key: Key, now: T | None) -> None:
        before = self._objects.get(key)
        if before == now:
            return
        if now is None:
            del self._objects[key]
        else:
            self._objects[key] = now
        self._changed(key, before, now)


class ReflectorOfMany(Generic[T]):
    """Reflectors of several namespaces as one, for a process that may not look into all of them."""

    def __init__(self, parts: Mapping[str, Reflector[T]]) -> None:
        self._parts = parts

    @property
    def objects(self) -> Mapping[Key, T]:
        """Known results now."""
        return {key: each for part in self._parts.values() for key, each in part.objects.items()}

    @property
    def trouble(self) -> MessageError | None:
        """Why one of them is not kept up; None where all are."""
        return next((part.trouble for part in self._parts.values() if part.trouble is not None), None)

    async def synced(self, seconds: float | None = None) -> None:
        """Return once all was listed for the first time. Raises as a reflector does."""
        await asyncio.gather(*(part.synced(seconds) for part in self._parts.values()))

    def unsync(self) -> None:
        """Have `synced` wait for new lists, where `run` begins again."""
        for part in self._parts.values():
            part.unsync()

    def learn(self, found: Object) -> None:
        """Take in an object as this process has just written it."""
        self._parts[namespace_of(found)].learn(found)

    def unlearn(self, key: Key, uid: str) -> None:
        """Take in that this process has just deleted an object."""
        self._parts[key[0]].unlearn(key, uid)

    async def refresh(self, seconds: float | None = None) -> None:
        """List all again. Raises as `synced`."""
        await asyncio.gather(*(part.refresh(seconds) for part in self._parts.values()))

    async def run(self) -> None:
        """Keep up, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for part in self._parts.values():
                tasks.create_task(part.run())


AnyReflector = Reflector[T] | ReflectorOfMany[T]


def reflector(
    client: KubernetesClient,
    selection: Selection,
    keep: Callable[[Object], T | None],
    changed: Callable[[Key, T | None, T | None], None] = lambda _key, _before, _now: None,
    recovered: Callable[[], None] = lambda: None,
) -> AnyReflector[T]:
    """Return a reflector of these objects, in all namespaces that the client's user may look into where none is chosen."""
    if selection.namespace is not None or not selection.kind.namespaced or not client.namespaces:
        return Reflector(client, selection, keep, changed, recovered)
    return ReflectorOfMany(
        {
            each: Reflector(client, replace(selection, namespace=each), keep, changed, recovered)
            for each in client.namespaces
        }
    )


def _key(found: Object) -> Key:
    return namespace_of(found), name_of(found)


def _version(found: Object) -> int:
    """Return an object's version as the number that all clusters make of it, so that older and newer can be told."""
    return int(found["metadata"]["resourceVersion"])

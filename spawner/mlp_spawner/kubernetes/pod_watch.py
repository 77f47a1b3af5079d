"""The notebook servers' pods of one hub, in all tenants' namespaces, kept up to date by one watch."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import ClassVar, Self

from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import EVENTS, PODS, Object
from mlp_hub.kubernetes.reflector import Key, Reflector, Selection, reflector
from mlp_spawner.kubernetes.pod_states import Pod, pod_of

SYNC_S = 20.0
"""Tuning: seconds that a start waits until the cluster has told which pods there are: how soon it is said to be gone."""


class PodWatch:
    """Knowledge of the pods; one for each hub's process, made at the first request."""

    _made: ClassVar[PodWatch | None] = None
    _making: ClassVar[asyncio.Lock] = asyncio.Lock()

    def __init__(self, client: KubernetesClient, selector: str) -> None:
        self.client = client
        self._reflector = reflector(client, Selection(PODS, labels=selector), pod_of, self._changed)
        self._running = asyncio.ensure_future(self._reflector.run())
        self._awaited: dict[Key, set[asyncio.Event]] = {}
        self.gone: dict[Key, Pod] = {}
        """The last of those that vanished, until whoever had it asks."""

    @classmethod
    async def shared(cls, connect: Callable[[], Awaitable[KubernetesClient]], selector: str) -> PodWatch:
        """Return the one of this process."""
        async with cls._making:
            if cls._made is None:
                cls._made = cls(await connect(), selector)
            return cls._made

    @property
    def pods(self) -> Mapping[Key, Pod]:
        """Pods that exist."""
        return self._reflector.objects

    async def ready(self, patience_s: float | None = None) -> None:
        """Return once it is known what is there; raise `ClusterUnreachable`, or why it may not be known, after the patience."""
        await self._reflector.synced(patience_s)

    @contextlib.contextmanager
    def awaiting(self, key: Key) -> Iterator[asyncio.Event]:
        """Return what is set at each change of a pod; its user clears it before it looks."""
        event = asyncio.Event()
        waiting = self._awaited.setdefault(key, set())
        waiting.add(event)
        try:
            yield event
        finally:
            waiting.discard(event)
            if not waiting and self._awaited.get(key) is waiting:
                del self._awaited[key]

    def _changed(self, key: Key, before: Pod | None, now: Pod | None) -> None:
        if now is not None:
            self.gone.pop(key, None)
        elif before is not None:
            self.gone[key] = before
        for event in self._awaited.get(key, ()):
            event.set()


class Warnings:
    """Warnings of the cluster about one pod, while its server starts.

    Faults of mounts, networks and images are reported nowhere else.
    """

    def __init__(self, client: KubernetesClient, key: Key) -> None:
        namespace, name = key
        selection = Selection(
            EVENTS, namespace, fields=f"involvedObject.kind=Pod,involvedObject.name={name},type=Warning"
        )
        self._reflector = Reflector(client, selection, _words)

    async def __aenter__(self) -> Self:
        """Begin to listen."""
        self._running = asyncio.ensure_future(self._reflector.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Listen no more."""
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)

    def last(self, uid: str) -> str:
        """Return the last warning about the pod of this uid, not one of its name before it; empty where there was none."""
        own = [(at, said) for at, of, said in self._reflector.objects.values() if of == uid]
        return max(own, default=("", ""))[1]


def _words(event: Object) -> tuple[str, str, str]:
    at = event.get("lastTimestamp") or event.get("eventTime") or ""
    said = f"{event.get('reason', '')}: {event.get('message', '')}"
    return str(at), event["involvedObject"].get("uid", ""), said

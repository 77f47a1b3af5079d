"""Keeper of the cluster's objects for tenants: creates them, restores them, removes them with a tenant.

The wanted object is compared with the API's answer of the time when it was applied. That answer is
compared with the present report of watches. So an unchanged object costs no request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from typing import Any

from mlp_hub.domain.errors import MessageError
from mlp_hub.executors.base import Superseded, TenantPlace
from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.kubernetes.tenancy import dependencies, given
from mlp_hub.executors.kubernetes.tenancy.apply import Putting
from mlp_hub.executors.kubernetes.tenancy.conflicts import Fights
from mlp_hub.executors.kubernetes.tenancy.drift import Sighting, sighting
from mlp_hub.executors.kubernetes.tenancy.objects.common_fields import Made, selector
from mlp_hub.executors.kubernetes.tenancy.policies import admission_check
from mlp_hub.executors.kubernetes.tenancy.removal import Left, Removal
from mlp_hub.executors.kubernetes.tenancy.tenant import for_all, for_tenant
from mlp_hub.kubernetes import kinds
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.errors import ClusterError
from mlp_hub.kubernetes.kinds import Kind, name_of, namespace_of
from mlp_hub.kubernetes.reflector import AnyReflector, Key, Reflector, Selection, reflector

log = logging.getLogger(__name__)
KEPT = (
    kinds.PRIORITY_CLASSES,
    kinds.ADMISSION_POLICIES,
    kinds.ADMISSION_BINDINGS,
    kinds.NAMESPACES,
    kinds.NETWORK_POLICIES,
    kinds.SERVICE_ACCOUNTS,
    kinds.RESOURCE_QUOTAS,
    kinds.LIMIT_RANGES,
    kinds.PERSISTENT_VOLUMES,
    kinds.PERSISTENT_VOLUME_CLAIMS,
    kinds.ROLES,
    kinds.ROLE_BINDINGS,
)
"""Contract: kinds that are made for tenants; with Volcano there are also queues."""

LOOK_S = 0.05
"""Tuning: seconds between two looks whether a first list came, or cannot."""


class TenantKeeper:
    """Has in the cluster what `keep` was told last, until `close`.

    What is put back is put back within `act` of that call's epoch, which raises `Superseded` where it is for another to do:
    then all that was told is forgotten.
    """

    def __init__(
        self,
        client: KubernetesClient,
        at: Installation,
        act: Callable[[int], AbstractAsyncContextManager[None]] = lambda _epoch: nullcontext(),
    ) -> None:
        self._client, self._at, self._act = client, at, act
        self._places: dict[str, TenantPlace] | None = None  # by namespace
        self._epoch = 0
        self._putting = Putting(client, at)
        self._removal = Removal(client, at)
        self._seen: dict[Kind, AnyReflector[Sighting]] = {}
        self._nodes: Reflector[frozenset[str]] | None = None
        self._own = ""
        self._shut = False  # whether the admission policies are known to hold
        self._api: Collection[str] = ()
        self._changed = asyncio.Event()
        self._fights = Fights()
        self._said = ""
        self._lacking: dict[str, str] = {}  # by namespace: what an administrator still has to make
        self._turn = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []

    async def keep(self, places: Sequence[TenantPlace], epoch: int = 0) -> None:
        """Have all that these tenants need, and nothing of others that hold nothing; return once it is so.

        Raises what the cluster refused first, once all else is done: without the policies of all, nothing is done for any.
        """
        async with self._turn:
            self._epoch = epoch
            self._places = self._placed(places)
            await self._open()
            if not self._at.namespaces:
                self._api = await dependencies.api_addresses(self._client)
            await self._bring_about()

    def _placed(self, places: Sequence[TenantPlace]) -> dict[str, TenantPlace]:
        """Return the owner of each namespace; if two names give the same one, its present owner keeps it."""
        found: dict[str, TenantPlace] = {}
        for place in places:
            namespace = self._at.namespace_of(place.name)
            other = found.setdefault(namespace, place)
            if other.name != place.name:
                has = (self._places or {}).get(namespace)
                keeps = place if has is not None and has.name == place.name else other
                found[namespace] = keeps
                log.error(
                    "teams %s and %s would have the same namespace %s; it is that of %s. Give the other one another name",
                    other.name, place.name, namespace, keeps.name,
                )  # fmt: skip
        return found

    def tenant_of(self, namespace: str) -> str | None:
        """Return the tenant of a namespace, as told last; None where it is none's."""
        place = (self._places or {}).get(namespace)
        return None if place is None else place.name

    async def close(self) -> None:
        """Put nothing back any more. All stays as it is."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        self._seen.clear()
        self._nodes = None

    async def _open(self) -> None:
        """Learn who we are and what there is, and watch what is not watched yet."""
        if not self._tasks:
            self._tasks.append(asyncio.ensure_future(self._put_back()))
        if not self._at.namespaces:
            await self._open_cluster()
        for kind in await self._kinds():
            if kind not in self._seen:
                chosen = Selection(kind, labels=selector(self._at))
                seen = reflector(self._client, chosen, sighting, partial(self._saw, kind))
                await self._start(seen)
                self._seen[kind] = seen

    async def _kinds(self) -> Sequence[Kind]:
        if self._at.namespaces:
            return given.KEPT
        return (*KEPT, kinds.QUEUES) if await dependencies.has_volcano(self._client) else KEPT

    async def _open_cluster(self) -> None:
        self._own = self._own or await dependencies.who_am_i(self._client)
        if self._nodes is None:
            nodes = Reflector(
                self._client,
                Selection(kinds.NODES),
                lambda node: dependencies.addresses_of(node) or None,
                lambda _key, _before, _now: self._changed.set(),
            )
            await self._start(nodes)
            self._nodes = nodes

    async def _start(self, copy: AnyReflector[Any]) -> None:
        """Begin to watch; raise what a watch alone would only log."""
        running, synced = asyncio.ensure_future(copy.run()), asyncio.ensure_future(copy.synced())
        while not synced.done() and copy.trouble is None:
            await asyncio.wait([synced], timeout=LOOK_S)
        if copy.trouble is None:
            self._tasks.append(running)
            return
        running.cancel()
        synced.cancel()
        raise copy.trouble

    def _saw(self, kind: Kind, key: Key, _before: Sighting | None, now: Sighting | None) -> None:
        if not self._putting.stands(kind, key, now):
            self._look_after(self._fights.next_wait((kind, key)))

    def _look_after(self, delay_s: float) -> None:
        asyncio.get_running_loop().call_later(delay_s, self._changed.set)

    async def _put_back(self) -> None:
        """Bring all about again whenever something is not as told."""
        while True:
            await self._changed.wait()
            async with self._turn:
                self._changed.clear()
                try:
                    async with self._act(self._epoch):
                        await self._bring_about()
                except Superseded:
                    self._places = None
                except MessageError as error:
                    if str(error) != self._said:
                        log.warning("what tenants have in the cluster is not as it should be yet: %s", error)
                    self._said = str(error)
                    self._look_after(self._fights.next_wait(None))
                except Exception:  # this task puts all back: it must outlive whatever one look meets
                    log.exception(
                        "what tenants have in the cluster could not be looked at; it is tried again"
                    )
                    self._look_after(self._fights.next_wait(None))
                else:
                    self._said = ""

    async def _bring_about(self) -> None:
        if self._places is None:
            return
        done: list[Any] = []
        try:
            await self._stand(for_all(self._at, self._own))
        except MessageError as error:
            if not self._shut:
                raise
            done.append(error)
        near = frozenset(self._api).union(*(self._nodes.objects.values() if self._nodes else ()))
        volcano = kinds.QUEUES in self._seen
        places = await self._ready(self._places)
        wanted = {
            namespace: for_tenant(self._at, place, near, volcano=volcano)
            for namespace, place in places.items()
        }
        done += await asyncio.gather(
            *map(self._stand, wanted.values()),
            self._remove([each for some in wanted.values() for each in some]),
            return_exceptions=True,
        )
        for each in done:
            if isinstance(each, BaseException):
                raise each

    async def _ready(self, places: dict[str, TenantPlace]) -> dict[str, TenantPlace]:
        """Return the tenants whose namespaces are ready; the others are named in the log where the hub may make none."""
        if not self._at.namespaces:
            return places
        found = {}
        for namespace, place in places.items():
            try:
                await given.check(self._client, self._at, place.name)
            except ClusterError:
                raise
            except MessageError as error:
                if self._lacking.get(namespace) != str(error):
                    log.warning("%s", error)
                self._lacking[namespace] = str(error)
            else:
                self._lacking.pop(namespace, None)
                found[namespace] = place
        return found

    async def _stand(self, wanted: Sequence[Made]) -> None:
        for kind, each in wanted:
            seen = self._seen[kind].objects.get((namespace_of(each), name_of(each)))
            if kind == kinds.ROLES and not self._shut:
                await admission_check.hold(self._client, namespace_of(each))
                self._shut = True
            if await self._putting.ensure_object(kind, each, seen) and kind in (
                kinds.ADMISSION_POLICIES,
                kinds.ADMISSION_BINDINGS,
            ):
                self._shut = False

    def _is_for_us(self, namespace: str) -> bool:
        """Whether objects there may be removed; a namespace that stays without its tenant stays shut."""
        return not self._at.namespaces or (
            namespace in (self._places or {}) and namespace not in self._lacking
        )

    async def _remove(self, wanted: Sequence[Made]) -> None:
        """Remove what is ours and not told."""
        keys = {(kind, namespace_of(each), name_of(each)) for kind, each in wanted}
        keys |= {(kind, "", name_of(each)) for kind, each in for_all(self._at, self._own)}
        left = [
            Left(kind, key, seen.tenant)
            for kind, copy in self._seen.items()
            for key, seen in copy.objects.items()
            if (kind, *key) not in keys and not seen.going and self._is_for_us(key[0])
        ]
        if left:
            await self._removal.remove(left)

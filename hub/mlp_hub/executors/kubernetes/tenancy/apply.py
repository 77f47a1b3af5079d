"""Application of one wanted object, which is recognised as long as nobody changes it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass

from mlp_hub.domain.errors import MessageError, Unavailable
from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.kubernetes.tenancy.drift import Sighting, digest, strangers, without_more
from mlp_hub.executors.kubernetes.tenancy.objects import files
from mlp_hub.executors.kubernetes.tenancy.objects.common_fields import is_ours
from mlp_hub.kubernetes import kinds
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.errors import ClusterError
from mlp_hub.kubernetes.kinds import Kind, Object, name_of, namespace_of
from mlp_hub.kubernetes.reflector import Key
from mlp_language.message import msg

EXACT = frozenset(
    {
        kinds.NETWORK_POLICIES,
        kinds.ADMISSION_POLICIES,
        kinds.ADMISSION_BINDINGS,
        kinds.ROLES,
        kinds.ROLE_BINDINGS,
        kinds.LIMIT_RANGES,
    }
)
"""Contract: kinds of objects to which nobody may add anything: it would be a door."""
INVALID = 422
"""Given: status by which the API says that an object cannot be as told."""
LOOKS = 100
"""Safety: looks at a volume until it counts as one that does not become available."""
LOOK_EVERY_S = 0.1
"""Tuning: seconds between two of them."""


class StillGoing(Unavailable):
    """Wanted object whose predecessor is still being removed."""


class Foreign(MessageError):  # noqa: N818 - names what was found
    """Something of this name is there that the hub has not made; it is left as it is."""


@dataclass(slots=True)
class _Put:
    """Wanted object and the API's result."""

    wanted: bytes
    found: bytes


class Putting:
    """Puts objects, and remembers what came of it; all of that may be lost."""

    def __init__(self, client: KubernetesClient, at: Installation) -> None:
        self._client, self._at = client, at
        self._put: dict[tuple[Kind, Key], _Put] = {}

    def stands(self, kind: Kind, key: Key, seen: Sighting | None) -> bool:
        """Whether an object is as it was put here."""
        known = self._put.get((kind, key))
        if known is None or seen is None or seen.going or seen.released:
            return False
        return seen.digest == known.found

    async def ensure_object(self, kind: Kind, wanted: Object, seen: Sighting | None) -> bool:
        """Have an object as wanted; False where a watch says that it is."""
        key = namespace_of(wanted), name_of(wanted)
        known = self._put.get((kind, key))
        if known is not None and known.wanted == digest(wanted) and self.stands(kind, key, seen):
            return False
        manifest = await self._manifest(kind, wanted, known)
        if manifest is None:
            return True
        try:
            found = await self._client.apply(manifest, kind)
        except ClusterError as error:
            if error.status != INVALID:
                raise
            if kind == kinds.PERSISTENT_VOLUMES:
                raise self._moved(wanted, error) from error
            if kind not in EXACT or not (found := await self._client.get(kind, key[1], key[0] or None) or {}):
                raise
            await self._only(kind, wanted, found)  # what others have added does not go with ours
            found = await self._client.apply(wanted, kind)
        if kind in EXACT and strangers(found):
            found = await self._only(kind, wanted, found)
        if kind == kinds.PERSISTENT_VOLUMES:
            found = await self._available(found)
        self._put[kind, key] = _Put(digest(wanted), digest(found))
        return True

    async def _manifest(self, kind: Kind, wanted: Object, known: _Put | None) -> Object | None:
        """Return what to tell the API of an object; None where a volume or a claim is left alone."""
        if kind == kinds.PERSISTENT_VOLUME_CLAIMS:
            return await self._claimed(wanted, known)
        if kind.namespaced:
            return wanted
        before = await self._check(kind, wanted)
        if kind != kinds.PERSISTENT_VOLUMES or before is None:
            return wanted
        before = await self._available(before)
        return None if _holds(known, wanted, before) else files.bound_as(wanted, before)

    async def _claimed(self, wanted: Object, known: _Put | None) -> Object | None:
        """Return the claim to put. A new one waits until its volume is available, so that it can get no other volume."""
        found = await self._client.get(kinds.PERSISTENT_VOLUME_CLAIMS, name_of(wanted), namespace_of(wanted))
        if found is None:
            volume = await self._client.get(kinds.PERSISTENT_VOLUMES, wanted["spec"]["volumeName"])
            if volume is None:
                return wanted  # named, it can take no other
            await self._available(volume, (files.AVAILABLE,))
            return files.unnamed(wanted)
        if _holds(known, wanted, found):
            return None
        return wanted if "volumeName" in found["spec"] else files.unnamed(wanted)

    async def _only(self, kind: Kind, wanted: Object, found: Object) -> Object:
        """Remove from an object the fields that are not wanted."""
        patch = without_more(wanted, found)
        return await self._client.patch(kind, name_of(wanted), patch, namespace_of(wanted) or None)

    async def _check(self, kind: Kind, wanted: Object) -> Object | None:
        """Return what is there of this name; raise where that is not ours, or on its way out."""
        found = await self._client.get(kind, name_of(wanted))
        if found is None:
            return None
        if not is_ours(self._at, found):
            raise Foreign(
                msg(
                    "the cluster has a {kind} {name} that this hub has not made; remove it, or give the hub another name in the cluster",
                    kind=kind.kind,
                    name=name_of(wanted),
                )
            )
        if "deletionTimestamp" in found["metadata"]:
            raise StillGoing(
                msg(
                    "{kind} {name} is being removed; it is made again after that",
                    kind=kind.kind,
                    name=name_of(wanted),
                )
            )
        return found

    async def _available(
        self, found: Object, phases: Collection[str] = (files.AVAILABLE, files.BOUND)
    ) -> Object:
        """Return a volume once its claim may take it: the cluster binds at once what is available when the claim comes."""
        for _ in range(LOOKS):
            phase = files.phase(found)
            if phase in phases:
                return found
            if phase == files.RELEASED:  # its claim was deleted; what is on it is everybody's still
                await self._client.patch(kinds.PERSISTENT_VOLUMES, name_of(found), files.FREED)
            await asyncio.sleep(LOOK_EVERY_S)
            again = await self._client.get(kinds.PERSISTENT_VOLUMES, name_of(found))
            if again is None:
                break
            found = again
        raise Unavailable(
            msg(
                "volume {name} does not become available: {phase}",
                name=name_of(found),
                phase=files.phase(found),
            )
        )

    @staticmethod
    def _moved(wanted: Object, error: ClusterError) -> MessageError:
        return MessageError(
            msg(
                "volume {name} has another place than in the hub's settings, and a volume cannot move ({said}); end the work in its namespace and delete the volume and its claim, or set the place back",
                name=name_of(wanted),
                said=error.said,
            )
        )


def _holds(known: _Put | None, wanted: Object, found: Object) -> bool:
    """Whether the API has the object that was put last, and it is as wanted; notes its present form."""
    if known is None or known.wanted != digest(wanted) or not files.is_as(wanted, found):
        return False
    known.found = digest(found)
    return True

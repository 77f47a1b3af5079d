"""Creation of objects that can be retried, and the difference between temporary and final errors."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from mlp_hub.domain.errors import OutOfReach
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.errors import ForbiddenError, MissingObjectError
from mlp_hub.kubernetes.kinds import Kind, Object

T = TypeVar("T")


async def created(client: KubernetesClient, kind: Kind, wanted: Object) -> Object:
    """Create an object, or return the existing one. Raises `OutOfReach` for errors that are not its fault."""
    meta = wanted["metadata"]
    made = await _passing(client.create(wanted, kind))
    while made is None:
        made = await client.get(kind, meta["name"], meta["namespace"])
        made = made or await _passing(client.create(wanted, kind))
    return made


async def created_unread(client: KubernetesClient, kind: Kind, wanted: Object) -> None:
    """Create an object that the hub need not read, or leave the one that is there. Raises `OutOfReach` as `created` does."""
    await _passing(client.create(wanted, kind))


async def _passing(asked: Awaitable[T]) -> T:
    """Raise `OutOfReach` for errors that are not the object's own fault."""
    try:
        return await asked
    except ForbiddenError as error:
        if error.passes:
            raise OutOfReach(error.message) from error
        raise
    except MissingObjectError as error:
        raise OutOfReach(error.message) from error

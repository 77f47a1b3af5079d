"""Interface to trees of tenants' files: which can be had here, and how one is moved into another.

It is a part of the workspace, whose owner alone knows where files are. Nothing here waits on the event loop, and whatever was begun
may be begun again after any death.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mlp_hub.domain.tenants.tenant import Isolation
from mlp_hub.executors.places import Belonging
from mlp_language.message import Message


class MovedWrongError(Exception):
    """Error for a file that cannot be moved, or was not moved unchanged; `message` has its name and reason."""

    def __init__(self, message: Message) -> None:
        super().__init__(str(message))
        self.message = message


@dataclass(frozen=True, slots=True)
class Crossing:
    """A tenant's way from one tree to another."""

    tenant: str
    old: Isolation
    new: Isolation


@dataclass(frozen=True, slots=True)
class TreeRoom:
    """Bytes to copy, and the free bytes at the target."""

    needed: int
    free: int


class TenantFiles(Protocol):
    """Trees of tenants' files. `epoch` and `check_cancelled` are as in the workspace; `did` is told bytes from any thread."""

    async def check(self, tenant: str, kept: Isolation, others: Mapping[str, Isolation]) -> None:
        """Refuse a way to keep files that cannot be had here, or is another's; changes nothing."""
        ...

    async def enter(self, tenant: str, kept: Isolation, *, held: bool, epoch: int) -> None:
        """Record where a tenant's files are, for all processes; while the tenant is `held` nobody changes them."""
        ...

    async def entered(self) -> Mapping[str, tuple[Isolation, bool]]:
        """Return the recorded isolation of each tenant that has a record, and whether the tenant is held."""
        ...

    async def is_quiet(self, tenant: str) -> bool:
        """Whether no process of the platform uses a tenant's files at this moment."""
        ...

    async def room(self, way: Crossing, what: Iterable[Belonging], epoch: int) -> TreeRoom:
        """Make the new tree where it is missing, and tell how much goes into it. Raises OSError, MovedWrongError."""
        ...

    async def copy(
        self,
        way: Crossing,
        what: Sequence[Belonging],
        epoch: int,
        check_cancelled: Callable[[], None],
        did: Callable[[int], None],
    ) -> None:
        """Copy what is not there yet."""
        ...

    async def compare(
        self,
        way: Crossing,
        what: Sequence[Belonging],
        epoch: int,
        check_cancelled: Callable[[], None],
        did: Callable[[int], None],
    ) -> None:
        """Raise MovedWrongError unless both trees have the same; all is on the disk when this returns."""
        ...

    async def dissolve(
        self,
        tenant: str,
        kept: Isolation,
        what: Sequence[Belonging],
        epoch: int,
        check_cancelled: Callable[[], None],
    ) -> None:
        """Remove what there is of a tenant in a tree, and the tree where it is the tenant's own."""
        ...

    async def rotate(self, tenant: str, epoch: int) -> None:
        """Give an encrypted tenant another key. Raises OSError."""
        ...

    async def mounted(self) -> Sequence[str]:
        """Return the tenants whose encrypted files are mounted."""
        ...

    async def rest(self, tenant: str, idle_s: float) -> bool:
        """Unmount a tenant's files if unused for `idle_s` seconds; return whether the mount is gone."""
        ...

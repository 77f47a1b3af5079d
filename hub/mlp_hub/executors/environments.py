"""Interface to the maker of environments: a lock of requirements, and files of a lock, in sandboxes.

It is a part of an executor, because only the executor knows the Python of its ranks. Nothing here
blocks the event loop. Any step that was begun can be begun again after any crash.
"""

from __future__ import annotations

from typing import Protocol

from mlp_hub.domain.errors import MessageError
from mlp_hub.domain.runtime.environment import KIND
from mlp_hub.domain.stored.storage import KERNELS
from mlp_hub.executors.workspace import Extent, Space, StoredPlace


class BuildFailed(MessageError):  # noqa: N818 - says what happened
    """The environment can never be made as asked; `message` has the last that was said."""


class BuildSteps(Protocol):
    """Callbacks while an environment is made, from any thread."""

    def admit(self, size: int) -> None:
        """Record that it takes `size` bytes by now. Raises `Refused` without room for them."""
        ...

    def leaves(self, space: Space) -> None:
        """Record the free space of the disk. Raises `Refused` where that is too little."""
        ...

    def report_output(self, lines: str) -> None:
        """Take note of the last that was written."""
        ...

    def check_cancelled(self) -> None:
        """Raise where it must not continue."""
        ...


class EnvironmentMaker(Protocol):
    """Makes environments; `owner` is the system uid that the sandboxes have, `epoch` as in the workspace."""

    @property
    def base(self) -> str:
        """The Python that environments are made for, and beside which they lie."""
        ...

    async def lock(
        self, of: StoredPlace, requirements: str, owner: int | None, *, epoch: int, steps: BuildSteps
    ) -> str:
        """Return the lock of requirements: each package with its version and hashes. Raises `BuildFailed`, `Refused`, `OSError`."""
        ...

    async def install(
        self, of: StoredPlace, lock: str, owner: int | None, *, epoch: int, steps: BuildSteps
    ) -> Extent:
        """Have the files of a lock, and tell their size; where they are there already nothing is done. Raises as `lock` does."""
        ...

    async def offer(self, of: StoredPlace, name: str, *, epoch: int) -> None:
        """Offer these files to notebooks of the tenant as the kernel of this name."""
        ...

    async def withdraw(self, of: StoredPlace, name: str, *, epoch: int) -> None:
        """Have them run on it no more."""
        ...

    async def forget(self, of: StoredPlace, *, epoch: int) -> None:
        """End what makes it, and remove what is left of that; its files are the workspace's to erase."""
        ...


def kernels_of(tenant: str) -> StoredPlace:
    """Return the place of the kernels of a tenant's environments, which lie beside these and go where they go."""
    return StoredPlace(KIND, tenant, KERNELS, tenant)

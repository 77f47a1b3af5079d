"""Interface to what makes environments: a lock of requirements, and files of a lock, both in sandboxes.

It is a part of an executor, for only that knows the Python of its ranks. Nothing here waits on the event loop; whatever was begun may be
begun again after any death.
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
    """What is asked and told while an environment is made, from any thread."""

    def admit(self, size: int) -> None:
        """Take note that it takes so many bytes by now. Raises `Refused` where there is no room for them."""
        ...

    def leaves(self, space: Space) -> None:
        """Take note of what the disk has left. Raises `Refused` where that is too little."""
        ...

    def told(self, lines: str) -> None:
        """Take note of the last that was written."""
        ...

    def goes_on(self) -> None:
        """Raise where it is not to go on."""
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
        """Have notebooks of the tenant run on what is there, as the kernel of this name."""
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

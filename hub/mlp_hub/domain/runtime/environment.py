"""Environments of tenants: packages that jobs and notebooks have beside the platform's own, made once from a lock with hashes.

Where jobs run in containers, an environment is an image, which has all packages itself: nothing is made, and nothing of it is stored here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from mlp_hub.domain.machine import Machine
from mlp_hub.domain.runtime.image import digest_in
from mlp_language.message import NOTHING, Message, msg

MOST_LOCK = 1 << 20
"""Safety: bytes of a lock, with a hash of each file of each package; a list of a team reads all locks."""
_KEY = 12
"""Given: characters that distinguish files of one name."""
_KERNEL = "mlp-env-"
"""Contract: prefix of the names of kernels of environments; saved notebooks contain it."""
KIND = "environment"
"""Given: kind of an environment's stored item, and of the work queue's key."""
_FORMAT = "1"
"""Contract: form of the files made from a lock; another form makes other files from the same lock."""


class EnvironmentPhase(StrEnum):
    """State of an environment."""

    CREATING = "creating"  # it is resolved, then installed
    READY = "ready"  # its files are there, and change no more
    ERROR = "error"  # it could not be made, and has no files
    DELETING = "deleting"  # its files are being removed, unless another one of its lock has them too


E = EnvironmentPhase
ENVIRONMENT_MACHINE = Machine(
    {
        E.CREATING: frozenset({E.READY, E.ERROR, E.DELETING}),
        E.READY: frozenset({E.DELETING}),
        E.ERROR: frozenset({E.DELETING}),
        E.DELETING: frozenset(),
    },
    msg("environment {name} is {old} and cannot become {new}"),
)
HOLDING_ENVIRONMENTS = frozenset({E.CREATING, E.READY, E.DELETING})
"""Phases in which an environment takes storage, once it is resolved; in error it has no files."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Environment of packages, or of an `image`.

    `lock` is empty until it is resolved. `files` is then the uid of the stored files, which all
    environments with the same lock share. An environment of an `image` has no requirements, no lock and
    no files.
    """

    uid: str
    tenant: str
    name: str
    user: str  # who made it
    phase: EnvironmentPhase
    requirements: str
    made_at: float
    lock: str = ""
    files: str = ""
    log: str = ""  # the last that was written while it was made
    message: Message = NOTHING
    image: str | None = None

    @property
    def folded(self) -> str:
        """Its name as file systems and kernels compare names."""
        return fold(self.name)

    @property
    def digest(self) -> str:
        """The SHA-256 of its lock, or that its image is named with; empty while there is none."""
        if self.image is not None:
            return digest_in(self.image)
        return digest_of(self.lock) if self.lock else ""


@dataclass(frozen=True, slots=True)
class EnvironmentUse:
    """An environment that a job runs in: that very one (`uid`), by the lock that it was made of, and the directory of its files or its image."""

    name: str
    uid: str = ""
    lock: str = ""
    directory: str = ""
    image: str | None = None


def check_environment_move(environment: Environment, new: EnvironmentPhase) -> None:
    """Raise `IllegalTransition` unless the table allows the move."""
    ENVIRONMENT_MACHINE.check(environment.phase, new, name=environment.name)


def fold(name: str) -> str:
    """Return what two names that differ in case only have in common."""
    return name.lower()


def kernel_of(name: str) -> str:
    """Return the name by which Jupyter knows the kernel of an environment of packages."""
    return f"{_KERNEL}{fold(name)}"


def digest_of(lock: str) -> str:
    """Return the SHA-256 of a lock."""
    return hashlib.sha256(lock.encode()).hexdigest()


def files_uid(tenant: str, base: str, lock: str) -> str:
    """Return the uid of the stored files for a lock in a tenant, for the Python that `base` describes."""
    parts = f"{KIND}\0{_FORMAT}\0{tenant}\0{base}\0{lock}"
    return hashlib.blake2b(parts.encode(), digest_size=13).hexdigest()


def directory_of(name: str, files: str) -> str:
    """Return the name of the directory of files, by the name of the first environment that has them."""
    return f"{fold(name)}-{files[:_KEY]}"


def name_in(directory: str) -> str:
    """Return the name of the environment that a directory of files is called by."""
    return directory.rpartition("-")[0] or directory


def packages_of(lock: str) -> Mapping[str, str]:
    """Return the packages of a lock with their versions, by name."""
    from packaging.utils import canonicalize_name  # noqa: PLC0415 - the shim has no site-packages

    found = {}
    for line in lock.splitlines():
        name, equals, rest = line.partition("==")
        if equals and not line.startswith((" ", "#")):
            version = rest.split(";")[0].split("\\")[0].strip()
            found[str(canonicalize_name(name.split("[")[0].strip()))] = version
    return found

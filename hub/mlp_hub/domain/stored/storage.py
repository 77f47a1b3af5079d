"""Stored items of people, of any kind, and their use of the tenant's storage."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from mlp_hub.domain.runtime.environment import name_in
from mlp_language.message import Message, msg


class StoredKind(StrEnum):
    """Kinds of stored items."""

    DATASET = "dataset"
    MODEL = "model"
    OUTPUT = "output"  # the directory of a run of a job; those of one user in one tenant hold together
    HOME = "home"  # of a user
    ENVIRONMENT = "environment"  # the files of a lock in a tenant, which all environments of that lock have


ARRIVING = ".arriving"
"""Directory beside the datasets of a user that has one for each, of files that are not whole yet; nothing stored has such a name."""
KERNELS = ".kernels"
"""Contract: directory next to a tenant's environments, as a path of Jupyter's.

It has the kernels by which notebooks run on them.
"""
TITLES: Mapping[StoredKind, Message] = {
    StoredKind.DATASET: msg("dataset {name} of {user}"),
    StoredKind.MODEL: msg("model {name} of {user}"),
    StoredKind.OUTPUT: msg("files of the jobs of {user}"),
    StoredKind.HOME: msg("home of {user}"),
    StoredKind.ENVIRONMENT: msg("environment {name}, made by {user}"),
}
"""How each is named where it holds storage."""
MEASURED = frozenset({StoredKind.OUTPUT, StoredKind.HOME})
"""Kinds that programs write to without asking: they are charged with their measured size, after the fact."""


@dataclass(frozen=True, slots=True)
class StoredItem:
    """One thing that is stored. Sizes in bytes.

    `used` is what its files take, as of the last look; `granted` what is being written may add to that; `reserved` what is kept for it
    however little it takes. Of what is `MEASURED`, `granted` only says that programs may be writing.
    """

    uid: str
    kind: StoredKind
    tenant: str
    user: str
    name: str
    made_at: float
    used: int = 0
    granted: int = 0
    reserved: int = 0

    @property
    def charged(self) -> int:
        """Bytes that it holds of its tenant's quota."""
        if self.kind in MEASURED:
            return self.used
        return max(self.used + self.granted, self.reserved)

    @property
    def exact(self) -> bool:
        """Whether what is charged is what its files take."""
        return self.charged == self.used


def title(kind: StoredKind, name: str, user: str) -> Message:
    """Name something stored for people; the files of an environment by the environment, not by their directory."""
    shown = name_in(name) if kind is StoredKind.ENVIRONMENT else name
    return replace(TITLES[kind], args={"name": shown, "user": user})


def home_uid(user: str) -> str:
    """Return the uid of a user's home among what is stored."""
    return _uid(StoredKind.HOME, user)


def outputs_id(user: str, tenant: str) -> str:
    """Return the id of the request that holds storage for a user's jobs of a tenant."""
    return _uid(StoredKind.OUTPUT, tenant, user)


def _uid(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=13).hexdigest()

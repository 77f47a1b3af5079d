"""What is stored for people, of any kind, and what each takes of its tenant's storage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from mlp_language.message import Message, msg


class StoredKind(StrEnum):
    """Kinds of what is stored."""

    DATASET = "dataset"
    MODEL = "model"
    OUTPUT = "output"  # of a job


TITLES: Mapping[StoredKind, Message] = {
    StoredKind.DATASET: msg("dataset {name} of {user}"),
    StoredKind.MODEL: msg("model {name} of {user}"),
    StoredKind.OUTPUT: msg("output of {name} of {user}"),
}
"""How each is named where it holds storage."""


@dataclass(frozen=True, slots=True)
class StoredItem:
    """One thing that is stored. Sizes in bytes.

    `used` is what its files take, as of the last look; `granted` what is being written may add to that; `reserved` what is kept for it
    however little it takes.
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
        return max(self.used + self.granted, self.reserved)

    @property
    def exact(self) -> bool:
        """Whether what is charged is what its files take."""
        return self.charged == self.used

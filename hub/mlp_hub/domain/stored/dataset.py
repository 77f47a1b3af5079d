"""Datasets, with the one table of their phases."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mlp_hub.domain.machine import Machine
from mlp_hub.domain.stored.storage import StoredItem
from mlp_language.message import NOTHING, Message, msg


class DatasetPhase(StrEnum):
    """State of a dataset."""

    CREATING = "creating"  # it is being uploaded; the size that was asked for is kept for it
    READY = "ready"  # whole, as its owner says; takes what its files take
    ERROR = "error"  # its upload failed, as its owner says; it may be gone on with, or deleted
    DELETING = "deleting"  # its files are being removed


D = DatasetPhase
DATASET_MACHINE = Machine(
    {
        D.CREATING: frozenset({D.READY, D.ERROR}),
        D.READY: frozenset({D.CREATING, D.DELETING}),
        D.ERROR: frozenset({D.CREATING, D.DELETING}),
        D.DELETING: frozenset(),
    },
    msg("dataset {name} is {old} and cannot become {new}"),
)
HOLDING_DATASETS = frozenset(D)
"""Phases in which a dataset takes storage."""


class SourceMode(StrEnum):
    """Part of its source that a dataset has."""

    COPY = "copy"  # all of it, copied once and when it is asked for
    READ_THROUGH = "read-through"  # nothing: who reads gets it from there, and jobs what they name, while they are not over


@dataclass(frozen=True, slots=True)
class ObjectSource:
    """Objects that a dataset is made of: a bucket and a prefix at an endpoint (empty: Amazon's), and which secret opens it."""

    bucket: str
    prefix: str
    endpoint: str = ""
    region: str = ""
    secret: str = ""  # empty: nobody asks for one
    mode: str = SourceMode.COPY

    @property
    def url(self) -> str:
        """Return it as people write it."""
        return f"s3://{self.bucket}/{self.prefix}"


@dataclass(frozen=True, slots=True)
class Dataset:
    """Dataset: its stored item, its state, and the progress of its upload as its owner reports it."""

    item: StoredItem
    phase: DatasetPhase
    progress: int
    message: Message = NOTHING
    source: ObjectSource | None = None

    @property
    def is_copied(self) -> bool:
        """Whether the platform copies it from its source now, or looks whether that can be read through."""
        return self.source is not None and self.phase is D.CREATING

    @property
    def is_read_through(self) -> bool:
        """Whether its files are those of its source, of which none is here but what jobs need."""
        return self.source is not None and self.source.mode == SourceMode.READ_THROUGH


def check_dataset_move(dataset: Dataset, new: DatasetPhase) -> None:
    """Raise `IllegalTransition` unless the table allows the move."""
    DATASET_MACHINE.check(dataset.phase, new, name=dataset.item.name)

"""Versions of models with their state and their use, and the one table of their phases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from mlp_hub.domain.machine import Machine
from mlp_hub.domain.stored.storage import StoredItem
from mlp_language.message import NOTHING, Message, msg


class ModelPhase(StrEnum):
    """State of a version of a model."""

    CREATING = "creating"  # its files are being copied; their size is kept for it
    READY = "ready"  # its files are there, and change no more
    ERROR = "error"  # its files could not be copied, or are no model; it has none
    DELETING = "deleting"  # its files are being removed


class ModelStage(StrEnum):
    """How far a version is used, by its owner's word."""

    NONE = "none"
    STAGING = "staging"
    PRODUCTION = "production"  # of one version of a name at a time
    ARCHIVED = "archived"


M = ModelPhase
MODEL_MACHINE = Machine(
    {
        M.CREATING: frozenset({M.READY, M.ERROR, M.DELETING}),
        M.READY: frozenset({M.DELETING}),
        M.ERROR: frozenset({M.DELETING}),
        M.DELETING: frozenset(),
    },
    msg("model {name} is {old} and cannot become {new}"),
)
HOLDING_MODELS = frozenset(M)
"""Phases in which a version of a model takes storage; in error none, and it has no files."""

ANY_FILES = "files"
"""Format of files that nobody looked into."""


@dataclass(frozen=True, slots=True)
class ModelFormat:
    """Format of files by their names and first bytes; nothing of them is ever loaded.

    `main` is the file or directory that shows it. `pickled`: to load it runs code that is in it.
    `facts` are shown to people. Files without a `name` are not a model.
    """

    name: str = ""
    main: str = ""
    pickled: bool = False
    facts: Mapping[str, str] = field(default_factory=dict)
    seen: tuple[str, ...] = ()  # some of the names that were looked at
    below: tuple[str, ...] = ()  # some of the directories further down that are models, where this is none

    @property
    def is_weights_alone(self) -> bool:
        """Whether the files have no program, so that an app needs a command to serve them."""
        return self.name == "safetensors" or (self.name == "torch" and self.main.endswith((".ckpt", ".bin")))


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Where files of a model come from: a run of a job, or with no job the owner's home; and the path below."""

    path: str
    job: str = ""
    run: int = 0


@dataclass(frozen=True, slots=True)
class ModelVersion:
    """Version of a model; its stored item is named NAME@VERSION.

    `lineage` is the known origin at the time of registration.
    """

    item: StoredItem
    model: str
    version: int
    phase: ModelPhase
    source: ModelSource
    lineage: str  # JSON
    stage: ModelStage = ModelStage.NONE
    format: ModelFormat = field(default_factory=ModelFormat)
    files: int = 0
    any_files: bool = False  # kept whatever they are
    message: Message = NOTHING


def check_model_move(model: ModelVersion, new: ModelPhase) -> None:
    """Raise `IllegalTransition` unless the table allows the move."""
    MODEL_MACHINE.check(model.phase, new, name=model.item.name)

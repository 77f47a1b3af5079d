"""Machine of a kind of object that has a life: its table of transitions, and how a move that is not in it is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Generic, TypeVar

from mlp_hub.domain.errors import IllegalTransition
from mlp_language.message import Message

P = TypeVar("P", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Machine(Generic[P]):
    """Table of transitions. `refusal` says with the holes {old} and {new} that one is not allowed; its other holes name the object."""

    transitions: Mapping[P, frozenset[P]]
    refusal: Message
    words: Mapping[P, Message] = field(
        default_factory=dict
    )  # phases in sentences; others are named as they are

    def check(self, old: P, new: P, history: tuple[str, ...] = (), **names: str) -> None:
        """Raise `IllegalTransition` unless the table allows the move. `names` fill the other holes."""
        if new not in self.transitions.get(old, ()):
            args = {**names, "old": self.words.get(old, old), "new": self.words.get(new, new)}
            raise IllegalTransition(replace(self.refusal, args=args), history)

"""Announcements: messages of administrators to everybody, or to the members of their tenant."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How much an announcement matters."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True)
class Announcement:
    """A line of plain text, shown from `begins_at` to before `ends_at`; `tenant` is empty where it is for everybody."""

    id: int
    tenant: str
    level: Level
    text: str
    begins_at: float
    ends_at: float
    made_by: str
    made_at: float

    def is_shown(self, now: float) -> bool:
        """Whether people are shown it at a time."""
        return self.begins_at <= now < self.ends_at

"""Result of the last check of the audit log's chain, as it is stored for the page."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

CHECKED = "audit.checked"
"""Key of the result among the values of the hub."""


@dataclass(frozen=True, slots=True)
class CheckedChain:
    """When the chain was checked, whether it was sound, how many entries it had, and the number of its last link."""

    time: float
    sound: bool
    entries: int
    seq: int

    def stored(self) -> dict[str, Any]:
        """Return it as a value that JSON can hold."""
        return asdict(self)

    @classmethod
    def of(cls, value: Any) -> CheckedChain | None:
        """Return a stored one; None where there is none, or something else."""
        try:
            return cls(float(value["time"]), value["sound"] is True, int(value["entries"]), int(value["seq"]))
        except (TypeError, KeyError, ValueError, OverflowError):
            return None

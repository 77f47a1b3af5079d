"""Faults of a scenario, all at once."""

from __future__ import annotations

MOST_FAULTS = 20
"""How many faults are told; the rest is counted."""


class ScenarioError(ValueError):
    """A scenario that cannot be run. `faults` are sentences that begin with their place: `jobs[3].cpu: ...`."""

    def __init__(self, faults: tuple[str, ...], more: int = 0) -> None:
        self.faults = faults
        self.more = more  # faults beyond those
        rest = (f"and {more} more",) if more else ()
        super().__init__("\n".join((*faults, *rest)))


class Faults:
    """Collects faults while a scenario is read."""

    def __init__(self) -> None:
        self._found: list[str] = []
        self._more = 0

    def add(self, place: str, what: str) -> None:
        """Note one fault; `what` says what is wrong and what would be right."""
        if len(self._found) < MOST_FAULTS:
            self._found.append(f"{place}: {what}" if place else what)
        else:
            self._more += 1

    def __len__(self) -> int:
        return len(self._found) + self._more

    def check(self) -> None:
        """Raise `ScenarioError` if there is any fault."""
        if self._found:
            raise ScenarioError(tuple(self._found), self._more)

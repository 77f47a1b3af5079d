"""Work that costs much is bounded: one at a time for each of those who ask, and a few for all together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mlp_hub.domain.errors import Reason, Refused


class Turns:
    """Who does such a thing now. `what` is its name in refusals, `most` how many there may be at a time."""

    def __init__(self, what: str, most: int) -> None:
        self._what = what
        self._most = most
        self._busy: set[str] = set()

    @contextmanager
    def of(self, who: str) -> Iterator[None]:
        """Have a turn. Refused where one's last is under way, or those of too many others."""
        if who in self._busy:
            raise Refused(Reason.CONFLICT, f"{self._what} of yours is under way; wait until it is done")
        if len(self._busy) >= self._most:
            msg = f"{self._what} of each of {len(self._busy)} others is under way, the most there may be; try again in a minute"
            raise Refused(Reason.CONFLICT, msg)
        self._busy.add(who)
        try:
            yield
        finally:
            self._busy.discard(who)

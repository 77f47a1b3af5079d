"""Under the policy `finish`: how much work of known length waits, and which of it would outlast all the rest."""

from __future__ import annotations

from bisect import bisect_left, insort


class Backlog:
    """Waiting work of known length, each job with its span in seconds and its share of the cluster."""

    def __init__(self) -> None:
        self._by_length: list[tuple[float, str]] = []  # of what was not sent ahead; the longest first
        self._work = 0.0  # of all, in seconds of the whole cluster

    def add(self, uid: str, span: float, share: float, *, ahead: bool) -> None:
        """Count a job that waits; `ahead` when it was sent ahead already."""
        self._work += span * share
        if not ahead:
            insort(self._by_length, (-span, uid))

    def remove(self, uid: str, span: float, share: float) -> None:
        """Count a job no more."""
        self._work -= span * share
        known = (-span, uid)
        at = bisect_left(self._by_length, known)
        if at < len(self._by_length) and self._by_length[at] == known:
            del self._by_length[at]

    def __bool__(self) -> bool:
        return bool(self._by_length)

    def pop_outlasting(self, running: float) -> str | None:
        """Send the longest job ahead if it outlasts all waiting and running work; `running` is the work left.

        It is that of the running jobs.
        """
        if self._by_length and -self._by_length[0][0] >= self._work + running:
            return self._by_length.pop(0)[1]
        return None

    def clear(self) -> None:
        """Forget all."""
        self._by_length, self._work = [], 0.0

    def fork(self) -> Backlog:
        """Return an independent copy."""
        other = Backlog()
        other._by_length, other._work = self._by_length[:], self._work
        return other

"""Counts failed logins and locks a name for a while; pure, the clock is passed in."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class _Failures:
    count: int = 0
    last: float = 0.0


@dataclass(slots=True)
class Lockout:
    """After `allowed` failures in a row a name is locked for `wait_s` seconds, the right password included.

    Remembers at most `capacity` names: with more, those whose last failure is oldest are forgotten.
    """

    allowed: int = 5
    wait_s: float = 300.0
    capacity: int = 10_000
    _failures: dict[str, _Failures] = field(default_factory=dict)

    def locked_for(self, name: str, now: float) -> float:
        """Return for how many seconds from `now` on the name stays locked; 0 when it is not."""
        seen = self._failures.get(name)
        if seen is None or seen.count < self.allowed:
            return 0.0
        left = seen.last + self.wait_s - now
        if left <= 0:
            del self._failures[name]
            return 0.0
        return left

    def failed(self, name: str, now: float) -> None:
        """Take down a failed login. Failures further apart than `wait_s` do not add up."""
        seen = self._failures.pop(name, None)
        if seen is None or now - seen.last > self.wait_s:
            seen = _Failures()
        seen.count += 1
        seen.last = now
        # put back last: the order of the dict is the order of the last failures
        self._failures[name] = seen
        while len(self._failures) > self.capacity:
            del self._failures[next(iter(self._failures))]

    def succeeded(self, name: str) -> None:
        """Forget the failures of a name whose owner logged in."""
        self._failures.pop(name, None)

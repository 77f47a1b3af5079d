"""Sizes of requests to a target: smaller after those that it did not take, and larger again after others."""

from __future__ import annotations

from mlp_hub.point_targets import TargetKind

LEAST_VALUES = 100
"""Given: values of the largest point: no request can be asked to have fewer."""
PROBES = 8
"""Tuning: requests of one job each after a request that the target did not take: how soon others are found that it takes, for load."""


class RequestSizes:
    """Sizes of the next requests: `jobs` in one at most, and about `values` values."""

    def __init__(self, kind: TargetKind) -> None:
        self._kind = kind
        self.jobs, self.values = kind.jobs, kind.values

    def abreast(self, *, doubts: bool) -> int:
        """Return the number of requests at a time; `doubts`: it is not known whether the target takes anything."""
        return max(PROBES, self._kind.abreast) if doubts else self._kind.abreast

    def answered(self, *, all_taken: bool) -> None:
        """Note the answers of a turn: after a failure, each request has one job, to find those that the target takes."""
        self.jobs = min(self._kind.jobs, 2 * self.jobs) if all_taken else 1

    def taken(self) -> None:
        """Note that the target took a request."""
        self.values = min(self._kind.values, self.values + LEAST_VALUES)

    def too_large(self) -> bool:
        """Note that a request was too large or too slow; return whether the next one is smaller."""
        before = self.values
        self.values = max(LEAST_VALUES, before // 2)
        return self.values < before

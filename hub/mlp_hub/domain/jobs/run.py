"""Distinction of runs: their parameters, their origin, and the outcome of their metrics; pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

ParamValue = str | int | float | bool
MOST_METRICS = 100
"""Limit of runs: metrics of one run whose last and best values can be compared."""
MOST_PARAMS = 100
"""Limit of runs: parameters of one run that can be searched."""
LONGEST_NAME = 100
"""Given: characters of a parameter's or metric's name, as points have it."""
LONGEST_TEXT = 1000
"""Limit of runs: characters of the value of a parameter that are stored."""
AXES = frozenset({"epoch", "step", "progress"})
"""Values that describe a point itself: the last of them is shown, and none is best."""
_ERRORS = {
    "loss",
    "losses",
    "error",
    "errors",
    "err",
    "mae",
    "mse",
    "rmse",
    "mape",
    "nll",
    "perplexity",
    "ppl",
}
_LOW = _ERRORS | {"wer", "cer", "fid", "time", "seconds", "latency", "duration"}
_WORDS = re.compile(r"[^a-z]+")


def low_is_best(name: str) -> bool:
    """Tell whether of a metric of this name the lowest value is the best, by the words in it: `val_loss`."""
    return not _LOW.isdisjoint(_WORDS.split(name.lower()))


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """Of one metric: the last value, the lowest and the highest; None where none was finite.

    They are those of one rank, the lowest that reports it: ranks that report their own part each do not mix.
    """

    rank: int
    last: float | None = None
    low: float | None = None
    high: float | None = None

    def best(self, name: str) -> float | None:
        """Return the best value of a metric of this name."""
        if name in AXES:
            return self.last
        return self.low if low_is_best(name) else self.high

    def then(self, rank: int, value: float) -> MetricSummary:
        """Return it with one value more."""
        if rank > self.rank:
            return self
        known = self if rank == self.rank else MetricSummary(rank)
        if not math.isfinite(value):
            return MetricSummary(rank, None, known.low, known.high)
        value = float(value)
        low = value if known.low is None else min(known.low, value)
        high = value if known.high is None else max(known.high, value)
        return MetricSummary(rank, value, low, high)


def summed(
    known: Mapping[str, MetricSummary], points: Iterable[tuple[int, Mapping[str, float | int]]]
) -> dict[str, MetricSummary]:
    """Return the summaries after further points (rank, values), in their order."""
    found = dict(known)
    for rank, values in points:
        for name, value in values.items():
            before = found.get(name)
            if before is None:
                if len(found) >= MOST_METRICS or len(name) > LONGEST_NAME:
                    continue
                before = MetricSummary(rank)
            found[name] = before.then(rank, value)
    return found


def scalars(values: Mapping[str, object]) -> dict[str, ParamValue]:
    """Return those that are one value each, what tables and comparisons can show; long texts are cut."""
    found: dict[str, ParamValue] = {}
    for name, value in values.items():
        if len(found) >= MOST_PARAMS:
            break
        if not 0 < len(name) <= LONGEST_NAME:
            continue
        if isinstance(value, str):
            found[name] = value[:LONGEST_TEXT]
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            found[name] = hex(value)[
                :LONGEST_TEXT
            ]  # no database has such numbers; digits Python refuses, where they are many
        elif isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
            found[name] = value
    return found


@dataclass(frozen=True, slots=True)
class UsedDataset:
    """Dataset as a run read it: `uid` is exactly that one, `size` its bytes when the job was submitted.

    `digest` is the state of its files when the run first started: a SHA-256 of the paths, lengths and
    checksums of `files` files. `checked` of them had a checksum. The others have the time of their last
    write. Empty: not known yet, or not known at all.
    """

    user: str
    name: str
    uid: str
    size: int
    digest: str = ""
    files: int = 0
    checked: int = 0


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of a run.

    Commit, dirty and environment are the client's claims about itself, not proofs. `environment` and
    `program` are texts that are kept once, by their sha256.
    """

    commit: str | None = None
    dirty: bool | None = None
    environment: str | None = None
    program: str | None = None
    data: tuple[UsedDataset, ...] = ()


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Summary of a run's points and ranks, up to the point `seq`; `final` once the run had ended by then."""

    seq: int = 0
    final: bool = False
    ran: float | None = None  # seconds that all attempts ran
    cpu_peak: float | None = None  # cores, the most of one rank
    ram_peak: int | None = None  # MiB, the most of one rank
    metrics: Mapping[str, MetricSummary] = field(default_factory=dict)

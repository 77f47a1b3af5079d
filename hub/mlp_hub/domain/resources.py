"""Amounts of cpu, gpu, memory and storage.

Whole numbers throughout, so that sums are exact: cpu in thousandths of a core, gpu in thousandths of a
device, ram in MiB, rom in bytes. The wire's floats are turned into these at its edge and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mlp_hub.domain.dimensions import BY_NAME, COUNTED, FLAT, MILLI, ON_NODES

__all__ = ["HOUR_S", "MILLI", "ZERO", "Quota", "Resources"]
HOUR_S = 3600.0
"""Given: seconds of an hour, in which core-hours are counted."""

Pairs = tuple[tuple[str, int], ...]
"""Amounts by name, sorted, without zeroes."""


@dataclass(frozen=True, slots=True)
class Resources:
    """An amount, or the size of something: cpu (m), gpu (m, of any kind), ram (MiB), rom (bytes).

    `kinds` are the gpu thousandths by kind; they are part of `gpu`, not beside it. `amounts` are those of the other
    dimensions.
    """

    cpu: int = 0
    gpu: int = 0
    ram: int = 0
    rom: int = 0
    kinds: Pairs = ()
    amounts: Pairs = ()

    def __add__(self, other: Resources) -> Resources:
        return Resources(
            self.cpu + other.cpu,
            self.gpu + other.gpu,
            self.ram + other.ram,
            self.rom + other.rom,
            _merge(self.kinds, other.kinds, 1) if other.kinds else self.kinds,
            _merge(self.amounts, other.amounts, 1) if other.amounts else self.amounts,
        )

    def __sub__(self, other: Resources) -> Resources:
        return Resources(
            self.cpu - other.cpu,
            self.gpu - other.gpu,
            self.ram - other.ram,
            self.rom - other.rom,
            _merge(self.kinds, other.kinds, -1) if other.kinds else self.kinds,
            _merge(self.amounts, other.amounts, -1) if other.amounts else self.amounts,
        )

    def __mul__(self, n: int) -> Resources:
        kinds = tuple([(k, v * n) for k, v in self.kinds]) if self.kinds else ()
        amounts = tuple([(d, v * n) for d, v in self.amounts]) if self.amounts else ()
        return Resources(self.cpu * n, self.gpu * n, self.ram * n, self.rom * n, kinds, amounts)

    def fits(self, room: Resources) -> bool:
        """Whether this amount fits into `room` in every dimension and for every gpu kind it names."""
        if self.cpu > room.cpu or self.gpu > room.gpu or self.ram > room.ram or self.rom > room.rom:
            return False
        if self.amounts and any(v > room.part(d) for d, v in self.amounts):
            return False
        if not self.kinds:
            return True
        have = dict(room.kinds)
        return all(v <= have.get(k, 0) for k, v in self.kinds)

    def items(self) -> Iterator[tuple[str, int]]:
        """Return an iterator of (dimension, amount) for cpu, gpu, ram, rom and the counted ones it has."""
        return iter(
            (("cpu", self.cpu), ("gpu", self.gpu), ("ram", self.ram), ("rom", self.rom), *self.amounts)
        )

    def part(self, dimension: str) -> int:
        """Return the amount of one dimension, of `gpu:KIND` too."""
        if dimension in FLAT:
            return int(getattr(self, dimension))
        base, colon, kind = dimension.partition(":")
        return dict(self.kinds).get(kind, 0) if colon else dict(self.amounts).get(base, 0)

    def with_part(self, dimension: str, amount: int) -> Resources:
        """Return a copy with another amount of one dimension."""
        if dimension in FLAT:
            return self.but(**{dimension: amount})
        return self.but(amounts=counted({**dict(self.amounts), dimension: amount}))

    def parts_of(self, dimension: str) -> int:
        """Return the largest amount that is a part of this dimension: less of it cannot be asked for."""
        return max([v for d, v in self.amounts if BY_NAME[d].within == dimension], default=0)

    @property
    def on_nodes(self) -> Resources:
        """Return the part that is on nodes: without storage, and without parts of memory."""
        amounts = tuple([(d, v) for d, v in self.amounts if d in ON_NODES]) if self.amounts else ()
        return self.but(rom=0, amounts=amounts)

    @property
    def is_zero(self) -> bool:
        """Whether nothing is asked for."""
        return not (self.cpu or self.gpu or self.ram or self.rom or self.amounts)

    def of_kind(self, kind: str | None) -> Resources:
        """Return the amount with its gpus told by this kind too; as it is where it has no kind, no gpu, or tells theirs already."""
        if kind is None or not self.gpu or self.kinds:
            return self
        return replace(self, kinds=((kind, self.gpu),))

    def but(self, **changes: Any) -> Resources:
        """Return a copy with some dimensions changed."""
        return replace(self, **changes)


ZERO = Resources()


@dataclass(frozen=True, slots=True)
class Quota:
    """Limit per dimension; `None` means no own limit (the nodes' capacity).

    The units are those of `Resources`. `kinds` limits gpu thousandths of single kinds, and unnamed
    kinds are unlimited. `amounts` limits the counted dimensions.
    """

    cpu: int | None = None
    gpu: int | None = None
    ram: int | None = None
    rom: int | None = None
    kinds: Mapping[str, int] = field(default_factory=dict)
    amounts: Mapping[str, int] = field(default_factory=dict)

    def part(self, dimension: str) -> int | None:
        """Return the limit of one dimension, of `gpu:KIND` too."""
        if dimension in FLAT:
            limit: int | None = getattr(self, dimension)
            return limit
        base, colon, kind = dimension.partition(":")
        return self.kinds.get(kind) if colon else self.amounts.get(base)

    def with_parts(self, parts: Mapping[str, int]) -> Quota:
        """Return the quota with other limits of some dimensions, kinds of gpu not among them."""
        flat: dict[str, Any] = {d: limit for d, limit in parts.items() if d in FLAT}
        rest = {d: limit for d, limit in parts.items() if d not in FLAT}
        return replace(self, **flat, amounts={**self.amounts, **rest})

    @property
    def on_nodes(self) -> Quota:
        """Return the part that is on nodes: without storage, and without parts of memory."""
        if self.rom is None and not self.amounts:
            return self
        return replace(self, rom=None, amounts={d: v for d, v in self.amounts.items() if d in ON_NODES})

    def items(self) -> Iterator[tuple[str, int]]:
        """Yield (dimension, limit) of all dimensions that have a limit, kinds of gpu not among them."""
        for dimension in FLAT:
            if (limit := getattr(self, dimension)) is not None:
                yield dimension, limit
        for dimension in COUNTED if self.amounts else ():
            if dimension in self.amounts:
                yield dimension, self.amounts[dimension]


def amount_of(parts: Mapping[str, int]) -> Resources:
    """Return amounts by dimension, and by `gpu:KIND`, as resources."""
    kinds = [(d[4:], v) for d, v in parts.items() if d.startswith("gpu:")]
    get = parts.get
    return Resources(
        get("cpu", 0), get("gpu", 0), get("ram", 0), get("rom", 0), tuple(sorted(kinds)), counted(parts)
    )


def quota_of(parts: Mapping[str, int | None]) -> Quota:
    """Return limits by dimension, and by `gpu:KIND`, as a quota."""
    kinds = {d[4:]: v for d, v in parts.items() if d.startswith("gpu:") and v is not None}
    get = parts.get
    amounts = {d: v for d in COUNTED if (v := get(d)) is not None}
    return Quota(get("cpu"), get("gpu"), get("ram"), get("rom"), kinds, amounts)


def counted(parts: Mapping[str, int]) -> Pairs:
    """Return the counted dimensions of some amounts."""
    return tuple(sorted([(d, parts[d]) for d in COUNTED if parts.get(d)])) if COUNTED else ()


def milli(value: float) -> int:
    """Turn cores or devices into thousandths, rounding to the nearest."""
    return round(value * MILLI)


def units(value: int) -> float:
    """Turn thousandths into cores or devices."""
    return value / MILLI


def core_seconds(seconds: Any, ranks: Any, cpu: Any) -> Any:
    """Return the core-seconds of `ranks` ranks in `seconds` seconds, each of `cpu` thousandths of a core.

    The arguments are numbers, or columns of a query.
    """
    return seconds * ranks * cpu / MILLI


def _merge(a: Pairs, b: Pairs, sign: int) -> Pairs:
    total = dict(a)
    for k, v in b:
        total[k] = total.get(k, 0) + sign * v
    return tuple(sorted((k, v) for k, v in total.items() if v))


THREADS = (
    "OMP_NUM_THREADS",  # OpenMP, and with it OpenBLAS, MKL, NumExpr and PyTorch
    "TF_NUM_INTRAOP_THREADS",  # not inter-op: operators block there, and a worker of a parameter server hangs with one such thread
    "LOKY_MAX_CPU_COUNT",  # joblib, and with it scikit-learn's `n_jobs=-1`
    "PYTHON_CPU_COUNT",  # `os.cpu_count()` from Python 3.13 on
)
"""Variables by which libraries that would take every core of the machine are told how many threads they may have."""
QUIET = {
    "HWLOC_HIDE_ERRORS": "2",  # a sandbox shows no network devices, on which hwloc and UCX remark in every log
    "UCX_LOG_LEVEL": "fatal",
    "TF_CPP_MIN_LOG_LEVEL": "2",  # of TensorFlow's C++ side errors only, and no remarks on itself
}
"""Variables that keep libraries from printing remarks about themselves at each start."""


def thread_variables(cores: float) -> dict[str, str]:
    """Return the variables that keep libraries to these cores, rounded up.

    The result is empty if `cores` is 0, which means no limit.
    """
    return dict.fromkeys(THREADS, str(math.ceil(cores))) if cores > 0 else {}

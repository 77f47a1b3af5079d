"""Amounts of cpu, gpu, memory and storage.

Whole numbers throughout, so that sums are exact: cpu in thousandths of a core, gpu in thousandths of a
device, ram in MiB, rom in bytes. The wire's floats are turned into these at its edge and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

MILLI = 1000
HOUR_S = 3600.0
"""Given: seconds of an hour, in which core-hours are counted."""
DIMENSIONS = ("cpu", "gpu", "ram", "rom")


@dataclass(frozen=True, slots=True)
class Resources:
    """An amount, or the size of something: cpu (m), gpu (m, of any kind), ram (MiB), rom (bytes).

    `kinds` are the gpu thousandths by kind, sorted by kind; they are part of `gpu`, not beside it.
    """

    cpu: int = 0
    gpu: int = 0
    ram: int = 0
    rom: int = 0
    kinds: tuple[tuple[str, int], ...] = ()

    def __add__(self, other: Resources) -> Resources:
        return Resources(
            self.cpu + other.cpu,
            self.gpu + other.gpu,
            self.ram + other.ram,
            self.rom + other.rom,
            _merge(self.kinds, other.kinds, 1),
        )

    def __sub__(self, other: Resources) -> Resources:
        return Resources(
            self.cpu - other.cpu,
            self.gpu - other.gpu,
            self.ram - other.ram,
            self.rom - other.rom,
            _merge(self.kinds, other.kinds, -1),
        )

    def __mul__(self, n: int) -> Resources:
        kinds = tuple([(k, v * n) for k, v in self.kinds]) if self.kinds else ()
        return Resources(self.cpu * n, self.gpu * n, self.ram * n, self.rom * n, kinds)

    def fits(self, room: Resources) -> bool:
        """Whether this amount fits into `room` in every dimension and for every gpu kind it names."""
        if self.cpu > room.cpu or self.gpu > room.gpu or self.ram > room.ram or self.rom > room.rom:
            return False
        if not self.kinds:
            return True
        have = dict(room.kinds)
        return all(v <= have.get(k, 0) for k, v in self.kinds)

    def items(self) -> Iterator[tuple[str, int]]:
        """Return an iterator of (dimension, amount) for cpu, gpu, ram and rom."""
        return iter((("cpu", self.cpu), ("gpu", self.gpu), ("ram", self.ram), ("rom", self.rom)))

    @property
    def is_zero(self) -> bool:
        """Whether nothing is asked for."""
        return not (self.cpu or self.gpu or self.ram or self.rom)

    def of_kind(self, kind: str | None) -> Resources:
        """Return the amount with its gpus told by this kind too; as it is where it has no kind, no gpu, or tells theirs already."""
        if kind is None or not self.gpu or self.kinds:
            return self
        return replace(self, kinds=((kind, self.gpu),))

    def but(self, **changes: int) -> Resources:
        """Return a copy with some dimensions changed."""
        return replace(self, **changes)  # type: ignore[arg-type]


ZERO = Resources()


@dataclass(frozen=True, slots=True)
class Quota:
    """Limit per dimension; `None` means no own limit (the nodes' capacity).

    The units are those of `Resources`. `kinds` limits gpu thousandths of single kinds, and unnamed
    kinds are unlimited.
    """

    cpu: int | None = None
    gpu: int | None = None
    ram: int | None = None
    rom: int | None = None
    kinds: Mapping[str, int] = field(default_factory=dict)


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


def _merge(
    a: tuple[tuple[str, int], ...], b: tuple[tuple[str, int], ...], sign: int
) -> tuple[tuple[str, int], ...]:
    if not b:
        return a
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

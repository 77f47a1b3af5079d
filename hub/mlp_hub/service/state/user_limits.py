"""Limits of the open jobs of one user, by their cost for everybody: memory, and separate tries.

All of them are in memory, and each kind of waiting job is tried by itself. Equal requests share one
verdict, so any number of them costs a cycle as much as one; requests that differ cost one each.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Hashable

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs.job import HOLDING, Job, JobSpec
from mlp_language.message import msg

BESIDES = 1024
"""Tuning: approximate bytes of a job in addition to its texts; bounds memory by an estimate."""
MIB = 2**20
"""Given: bytes of a MiB."""


class Weights:
    """Bytes of the jobs that have not ended, and kinds of those that hold nothing, by user."""

    def __init__(self) -> None:
        self._texts: Counter[str] = Counter()
        self._kinds: dict[str, Counter[Hashable]] = {}

    def change(self, before: Job | None, now: Job | None) -> None:
        """Count a job that came (None before), changed, or has ended (None now)."""
        job = now or before
        if job is None:
            return
        if (before is None) is not (now is None):
            self._add(job.spec, 1 if now is not None else -1)
        was, waits = _waits(before), _waits(now)
        if was is waits and (before is None or now is None or before.spec is now.spec):
            return
        if before is not None and was:  # what it asked for then may be another thing
            self._add_kind(before.spec, -1)
        if now is not None and waits:
            self._add_kind(now.spec, 1)

    def clear(self) -> None:
        """Forget all."""
        self._texts.clear()
        self._kinds.clear()

    def bytes_of(self, user: str) -> int:
        """Return what the user's open jobs take of the memory, about."""
        return self._texts[user]

    def kinds_of(self, user: str) -> frozenset[Hashable]:
        """Return what the user's waiting jobs ask for, without repetition."""
        return frozenset(self._kinds.get(user, ()))

    def _add(self, spec: JobSpec, sign: int) -> None:
        self._texts[spec.user] += sign * size_of(spec)
        if not self._texts[spec.user]:
            del self._texts[spec.user]

    def _add_kind(self, spec: JobSpec, sign: int) -> None:
        mine = self._kinds.setdefault(spec.user, Counter())
        kind = kind_of(spec)
        mine[kind] += sign
        if not mine[kind]:
            del mine[kind]
        if not mine:
            del self._kinds[spec.user]


class Scales:
    """Weighs the jobs of one lot, one after another, beside what is open already."""

    def __init__(self, weights: Weights, most_bytes: int, most_kinds: int) -> None:
        self._weights = weights
        self._most_bytes = most_bytes
        self._most_kinds = most_kinds
        self._bytes: Counter[str] = Counter()
        self._kinds: dict[str, set[Hashable]] = {}

    def refusal(self, spec: JobSpec) -> Refused | None:
        """Return why the job is one too many for its user; None when it is not, and counts from now on."""
        user, size, kind = spec.user, size_of(spec), kind_of(spec)
        taken = self._weights.bytes_of(user) + self._bytes[user]
        if taken + size > self._most_bytes:
            return Refused(
                Reason.CONFLICT,
                msg(
                    "your jobs that have not ended take {taken} MiB of the hub's memory with their programs, arguments and variables, and this one {size} MiB more; the limit is {most_bytes} MiB. Put the program into a file and name it as entry, or wait until some have ended",
                    taken=f"{taken / MIB:.1f}",
                    size=f"{size / MIB:.1f}",
                    most_bytes=f"{self._most_bytes / MIB:g}",
                ),
            )
        kinds = self._kinds.setdefault(user, set(self._weights.kinds_of(user)))
        if kind not in kinds and len(kinds) >= self._most_kinds:
            return Refused(
                Reason.CONFLICT,
                msg(
                    "your waiting jobs ask for {count} different sizes, which is the limit; any number of jobs can ask for the same size. Ask for the size of one of them (workers, cpu, ram, gpu, priority), or wait until some have started",
                    count=len(kinds),
                ),
            )
        self._bytes[user] += size
        kinds.add(kind)
        return None


def size_of(spec: JobSpec) -> int:
    """Return about how many bytes a job takes in memory."""
    texts = (spec.code or "", *spec.args, *spec.env, *spec.env.values())
    own = spec.own_runtime.size if spec.own_runtime is not None else 0
    return BESIDES + own + sum(map(sys.getsizeof, texts))


def kind_of(spec: JobSpec) -> Hashable:
    """Return what the scheduler cannot try together with anything else."""
    return (
        *(spec.tenant, spec.per_worker, spec.workers_min, spec.workers_max, spec.ps),
        *(spec.topology, spec.priority, spec.gpu_kind),
    )


def _waits(job: Job | None) -> bool:
    return job is not None and job.phase not in HOLDING

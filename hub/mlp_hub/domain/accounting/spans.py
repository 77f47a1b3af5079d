"""Spans of the ledger: a holder held an amount from one moment to another; their exact sums by day.

All sums are whole numbers. A time counts in whole milliseconds, storage in whole seconds and started blocks of 64 KiB. So
the parts of a span add up to the span, wherever it is split.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import add
from typing import NamedTuple

from mlp_hub.domain.accounting.days import DAY_S, month_of
from mlp_hub.domain.resources import MILLI, Pairs
from mlp_hub.domain.workload.ledger import OF_JOBS, OF_STORAGE
from mlp_hub.domain.workload.workload import APP, JOB, SERVER

DAY_MS = DAY_S * MILLI
STORAGE, OTHER = "storage", "other"
NODES, PLATFORM = "nodes", "platform"
"""Appliers of the spans of what nodes can give out, and of what their systems keep; they are nobody's."""
WORKS = (JOB, APP, SERVER.title, STORAGE, OTHER)
"""Kinds of work that hold amounts."""
NAME_LENGTH = 200
"""Safety: letters of a name that are kept: bounds a row."""
BLOCK = 2**16
"""Given: bytes of a block, in which storage is counted."""
MOST = 2**29
"""Safety: the largest amount of a holder that counts (500,000 cores, 500 TiB memory); a month of it fits the database's 63 bits."""
MOST_BLOCKS = 2**40
"""Safety: the largest storage of a holder that counts, in blocks (64 PiB), for the same reason."""


class HeldSums(NamedTuple):
    """Sums: held, used, and the part of the held amounts whose use was measured.

    cpu and gpu in thousandths times milliseconds, ram in MiB times milliseconds, rom in blocks times seconds. Of the measured part,
    `reported` is that of work whose use is its own report alone, and `unknown` that of which nobody knows whether it is.
    """

    cpu: int = 0
    gpu: int = 0
    ram: int = 0
    rom: int = 0
    cpu_used: int = 0
    cpu_measured: int = 0
    ram_used: int = 0
    ram_measured: int = 0
    cpu_reported: int = 0
    cpu_unknown: int = 0
    ram_reported: int = 0
    ram_unknown: int = 0

    def plus(self, other: HeldSums) -> HeldSums:
        """Return the sum."""
        return HeldSums(*map(add, self, other))

    @property
    def cpu_idle(self) -> int:
        """The measured part that was not used."""
        return max(self.cpu_measured - self.cpu_used, 0)

    @property
    def ram_idle(self) -> int:
        """The same of memory."""
        return max(self.ram_measured - self.ram_used, 0)

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is held and nothing was used."""
        return not any(self)


NOTHING_HELD = HeldSums()


class UsageAccount(NamedTuple):
    """Holder of sums. `name` is empty where only the kind of work counts, `gpu_kind` where the work has no gpu of a kind."""

    tenant: str
    user: str
    work: str
    name: str = ""
    gpu_kind: str = ""


@dataclass(frozen=True, slots=True)
class LedgerSpan:
    """A holder's amount from `begins` to `ends`, in seconds since the epoch.

    `counted` is the moment up to which an earlier span has it. `cpu_used` (thousandths of a core) and `ram_used` (MiB) are
    the means since `ran_from`; None where nobody measured them. `cpu_reported` and `ram_reported`: the mean is the work's own
    report; None where nobody knows. `attempt` is that of a job.
    """

    applier: str
    tenant: str
    user: str
    holder: str
    cpu: int
    gpu: int
    ram: int
    rom: int
    kinds: Pairs
    begins: float
    ends: float
    counted: float | None = None
    cpu_used: int | None = None
    ram_used: int | None = None
    ran_from: float | None = None
    attempt: str | None = None
    cpu_reported: bool | None = None
    ram_reported: bool | None = None

    @property
    def account(self) -> UsageAccount:
        """Return whose it is."""
        work, name = work_of(self.applier, self.holder)
        return UsageAccount(self.tenant, self.user, work, name[:NAME_LENGTH])

    @property
    def run(self) -> str:
        """Return the uid of the job whose span it is; empty where it is none's."""
        return "" if self.attempt is None else self.attempt.partition(".")[0]

    def by_day(
        self, since: int | None = None, until: int | None = None
    ) -> Iterator[tuple[int, UsageAccount, HeldSums]]:
        """Split it by day and by gpu kind; `since` and `until` are days that bound it, the last one excluded."""
        account = self.account
        begin, end = _ms(self.begins if self.counted is None else self.counted), _ms(self.ends)
        measured = self.cpu_used is not None and self.ram_used is not None
        first = _ms(self.begins) if measured else begin
        ran = first if self.ran_from is None else max(_ms(self.ran_from), first)
        if since is not None:
            first = max(first, since * DAY_MS)
        if until is not None:
            end = min(end, until * DAY_MS)
        for day in range(first // DAY_MS, -(-end // DAY_MS)):
            low, high = day * DAY_MS, min((day + 1) * DAY_MS, end)
            ms = max(high - max(low, begin), 0)
            seen = max(high - max(low, first), 0) if measured else 0
            used = max(high - max(low, ran), 0) if measured else 0
            seconds = high // MILLI - max(low, begin) // MILLI if ms else 0
            cpu, ram = min(self.cpu, MOST), min(self.ram, MOST)
            held = HeldSums(
                cpu=cpu * ms,
                ram=ram * ms,
                rom=min(-(-self.rom // BLOCK), MOST_BLOCKS) * seconds,
                cpu_used=min(self.cpu_used or 0, MOST) * used,
                cpu_measured=cpu * seen,
                ram_used=min(self.ram_used or 0, MOST) * used,
                ram_measured=ram * seen,
                cpu_reported=cpu * seen if self.cpu_reported else 0,
                cpu_unknown=cpu * seen if self.cpu_reported is None else 0,
                ram_reported=ram * seen if self.ram_reported else 0,
                ram_unknown=ram * seen if self.ram_reported is None else 0,
            )
            for number, (kind, gpu) in enumerate(self._gpus()):
                part = held if number == 0 else NOTHING_HELD
                part = part._replace(gpu=min(gpu, MOST) * ms)
                if not part.is_nothing:
                    yield day, account._replace(gpu_kind=kind), part

    def _gpus(self) -> list[tuple[str, int]]:
        """Return the gpus by kind; those of no kind have an empty one. It has one entry at least."""
        found = [(kind, gpu) for kind, gpu in self.kinds if gpu]
        rest = self.gpu - sum(gpu for _, gpu in found)
        return [*found, ("", rest)] if rest > 0 or not found else found


def work_of(applier: str, holder: str) -> tuple[str, str]:
    """Return the kind of work and its name, by the applier of a request and the words for its holder."""
    if applier == OF_JOBS:
        kind, _, rest = holder.partition(" ")
        if kind == APP and rest:
            return APP, rest.rpartition(" ")[0] or rest
        return JOB, holder.partition("@")[0]
    if applier == OF_STORAGE:
        return STORAGE, holder
    if applier == SERVER.applier:
        return SERVER.title, holder
    return (applier, "") if applier in (NODES, PLATFORM) else (OTHER, holder)


GRAINS = ("day", "month", "name", "run")
"""Grains of the stored sums: by day, by month, by day and name, and by day and run; the last two are kept for a while."""


def rolled_up(spans: Iterable[LedgerSpan]) -> Mapping[tuple[str, int, UsageAccount], HeldSums]:
    """Return the sums of spans, by (grain, its day or month, account)."""
    sums: dict[tuple[str, int, UsageAccount], HeldSums] = {}

    def count(grain: str, period: int, account: UsageAccount, held: HeldSums) -> None:
        key = (grain, period, account)
        sums[key] = sums.get(key, NOTHING_HELD).plus(held)

    for span in spans:
        for day, account, held in span.by_day():
            nameless = account._replace(name="")
            count("name", day, account, held)
            if account.work == JOB and span.run:
                count("run", day, account._replace(name=span.run), held)
            count("day", day, nameless, held)
            count("month", month_of(day), nameless, held)
    return sums


def _ms(seconds: float) -> int:
    """Return whole milliseconds, always the same for the same moment."""
    return int(seconds * MILLI)

"""Use of each rank from its start to its end, for exit.json: no other part sees all of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from mlp_hub.sandbox.shim import cgroups, files
from mlp_hub.sandbox.shim.ranks import RankProcess
from mlp_hub.sandbox.shim.usage import PERIOD, Used

_FIRST = 0.2  # seconds from a rank's start to the first look
_PATIENCE = 100.0  # times what a look took until the next one, where there are very many processes


class Meter:
    """Meter that looks at all ranks from time to time.

    A rank that is alone has the numbers of its control group, which miss nothing. With several ranks,
    the memory of a rank is that of its control group. If it has none, it is that of its processes. The
    cores of each are always those of its processes. Reports from the inside on a rank's end are
    accepted up to the amount that the whole sandbox used.
    """

    def __init__(self, groups: cgroups.Groups, limits: dict[str, Any], *, alone: bool) -> None:
        self._groups, self._alone = groups, alone
        self._limit = limits["ram_mib"] << 20
        self._of_one = (limits.get("rank_ram_mib") or limits["ram_mib"]) << 20
        self._used: dict[int, Used] = {}
        self.due: float | None = None

    def begin(self, rank: RankProcess) -> None:
        """Measure a rank that has just started."""
        now = time.monotonic()
        self._used[rank.number] = Used(now)
        self.due = min(self.due or now + _FIRST, now + _FIRST)

    def look(self, roots: dict[int, int]) -> None:
        """Look at ranks by the process above all of theirs; `due` is the next time."""
        now = time.monotonic()
        whole_ram, whole_cpu = self._groups.memory(), self._groups.cpu_seconds(cgroups.RANKS)
        for number, pid in roots.items():
            used = self._used.get(number)
            if used is None or used.ended is not None:
                continue
            if self._alone and whole_ram is not None and whole_cpu is not None:
                used.see(now, whole_cpu, whole_ram)
                continue
            seen = [found for one in files.descendants(pid) if (found := files.usage(one, ended=True))]
            if seen and self._groups.ranks_apart:
                used.see(now, sum(found[0] for found in seen), self._groups.memory(number) or 0)
            elif seen:
                ram = sum(found[1] for found in seen)
                # what processes share is counted for each of them
                used.see(
                    now, sum(found[0] for found in seen), ram if whole_ram is None else min(ram, whole_ram)
                )
        after = time.monotonic()
        self.due = after + max(PERIOD, _PATIENCE * (after - now))

    @property
    def cpu_s(self) -> float:
        """Processor seconds of all ranks, as last seen."""
        return sum(used.cpu_s for used in self._used.values())

    def ended(self, number: int, cpu_s: Any = None, ram_kib: Any = None) -> None:
        """End a rank, with the kernel's counts of it as the inside reported them."""
        used = self._used.get(number)
        if used is not None:
            cpu, ram = _amount(cpu_s, self._groups.cpu_seconds(cgroups.RANKS)), _amount(ram_kib, None)
            if self._groups.ranks_apart:  # its group tells the most of all its processes together
                ram = None
            bound = self._limit or None
            ram_bytes = None if ram is None else int(ram) << 10
            used.finish(
                time.monotonic(),
                cpu,
                ram_bytes if bound is None or ram_bytes is None else min(ram_bytes, bound),
            )

    def conclude(self, *, oom: bool) -> None:
        """Take what is known once all is over."""
        for number, used in self._used.items():
            self.ended(number)
            if self._groups.ranks_apart:
                out = self._groups.out_of_memory_kills(number)
                used.finish(used.began, None, self._of_one if out else self._groups.memory_peak(number))
            if self._alone:
                most = self._limit if oom else self._groups.memory_peak()
                used.finish(time.monotonic(), self._groups.cpu_seconds(cgroups.RANKS), most)

    def of(self, number: int) -> dict[str, Any]:
        """Return what a rank used; empty for one that never ran."""
        used = self._used.get(number)
        return used.to_json() if used else {}


def roots(ranks: Sequence[RankProcess], command: int | None) -> dict[int, int]:
    """Return, by rank that runs, the process above all of its processes; of one that is alone the command."""
    alone = command if len(ranks) == 1 else None
    return {rank.number: pid for rank in ranks if rank.state == "running" and (pid := alone or rank.pid)}


def hungriest(ranks: Sequence[RankProcess]) -> int | None:
    """Return the rank that uses most memory."""
    used = {
        rank.number: sum(seen[1] for pid in files.descendants(rank.pid) if (seen := files.usage(pid)))
        for rank in ranks
        if rank.pid
    }
    return max(used, key=used.__getitem__, default=None)


def _amount(told: Any, most: float | None) -> float | None:
    """Return the reported value, limited to `most`, or None if it is not an amount."""
    if isinstance(told, bool) or not isinstance(told, int | float) or not 0 <= told < 2**50:
        return None
    return float(told) if most is None else min(float(told), most)

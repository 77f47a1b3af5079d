"""Samples the ledger while everything breaks: never above a quota, no job twice, nothing runs that holds nothing."""

from __future__ import annotations

import threading
from collections import Counter

from torture.findings import Violation
from torture.site import TENANTS, Site

EVERY_S = 0.2


class Sampler:
    """A thread; `samples` counts those that could be taken."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.samples = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(EVERY_S):
            before = self.site.held()
            alive = set(self.site.shims())
            after = self.site.held()
            if before is None or after is None:
                continue
            self.samples += 1
            for rows in (before, after):
                self._check(rows)
            holding = {row[0] for row in (*before, *after)}
            for attempt in alive - holding:
                # it may have ended, and given back, between the two looks
                still = attempt in self.site.shims()
                rows = self.site.held()
                if still and rows is not None and attempt not in {row[0] for row in rows}:
                    self._add("runs-without-quota", f"attempt {attempt} runs and holds nothing", rows)

    def _check(self, rows: list) -> None:
        used: Counter[str] = Counter()
        jobs: Counter[str] = Counter()
        for row in rows:
            used[row[2]] += row[3]
            if row[1] == "jm":
                jobs[row[0].rpartition(".")[0]] += 1
        for tenant, quota in TENANTS.items():
            if used[tenant] > quota * 1000:
                self._add(
                    "above-quota", f"{tenant}: {used[tenant]} of {quota * 1000:g} milli-cpu are held", rows
                )
        for uid, count in jobs.items():
            if count > 1:
                self._add("held-twice", f"job {uid} holds {count} times", rows)

    def _add(self, kind: str, text: str, rows: list) -> None:
        self.site.findings.add(Violation(kind, text), {"ledger": [list(row) for row in rows]})

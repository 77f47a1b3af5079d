"""Carries out what was drawn, and makes all of it good again."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import httpx

from torture import victims
from torture.findings import Violation
from torture.load import Load
from torture.plan import Fault
from torture.site import Site
from torture.stranger import Stranger
from torture.toll import Outage
from torture.upkeep import Operator

HANG_S = 75.0  # the longest that a component may hang
TOLD_S = 4.0  # after so long an outage must be told
ASK_S = 4.0  # so long it is asked for
AIM_S = 3.0  # the longest that an answer is waited for whose service is to be killed


class Breaker:
    """Breaks a site. All of it runs in the main thread: the database's server ends with the thread that started it."""

    def __init__(self, site: Site, load: Load, operator: Operator) -> None:
        self.site = site
        self.load = load
        self.operator = operator
        self.toll = site.toll
        self._later: list[tuple[float, Callable[[], None]]] = []
        self._full: Outage | None = None
        self._away: Outage | None = None
        self._hung: list[tuple[float, victims.Victim]] = []
        self._shell = Stranger(site)

    def run(self, faults: list[Fault], seconds: float) -> None:
        """Carry out a round's faults, each at its time, then make all good."""
        began = time.monotonic()
        for fault in faults:
            self._wait(began + fault.at)
            getattr(self, f"_{fault.name}")(fault)
        self._wait(began + seconds)
        self.heal()

    def heal(self, patience: float = HANG_S) -> None:
        """End what still lasts, but for what hangs: that is the hub's to end."""
        for _, undo in sorted(self._later, key=lambda item: item[0]):
            undo()
        self._later.clear()
        for since, victim in self._hung:
            while victim.lives() and time.monotonic() < since + patience:
                time.sleep(0.2)
            if victim.lives() and not patience:
                victim.thaw()
            elif victim.lives():
                text = f"the {victim.kind} hung for {time.monotonic() - since:.0f} s and was not ended"
                self.site.findings.add(Violation("hang-unnoticed", text), None, self.site.settings.log_dir)
                victim.thaw()
        self._hung.clear()
        self._shell.wait()

    def _wait(self, until: float) -> None:
        while True:
            now = time.monotonic()
            for item in [item for item in self._later if item[0] <= now]:
                self._later.remove(item)
                item[1]()
            ahead = min([until, *(at for at, _ in self._later)]) - time.monotonic()
            if until <= now:
                return
            time.sleep(min(max(ahead, 0), max(until - now, 0)))

    def _until(self, seconds: float, undo: Callable[[], None]) -> None:
        self._later.append((time.monotonic() + seconds, undo))

    # ------------------------------------------------------------------- faults

    def _chosen(self, fault: Fault) -> list[victims.Victim]:
        """Return who was drawn; where none of that kind is there now, one of another kind that is."""
        found: list[victims.Victim] = []
        for kind, which in fault.victims:
            for other in (kind, *victims.INSTEAD):
                there = [
                    victim
                    for victim in victims.of_kind(self.site, other, self.operator.process)
                    if victim not in found
                ]
                if there:
                    found.append(there[int(which * len(there))])
                    break
        return found

    def _kill(self, fault: Fault) -> None:
        self.toll.fault(fault.name)
        for victim in self._chosen(fault):  # found first, so that they die in the same moment
            victim.kill(self.toll)

    _several = _kill

    def _everything(self, fault: Fault) -> None:
        """Stop all of it, so that nobody sees another's death, then kill all of it."""
        self.toll.fault(fault.name)
        found = victims.everything(self.site)
        for victim in found:
            victim.freeze(self.toll)
        for victim in [*found, *(v for v in victims.everything(self.site) if v not in found)]:
            victim.kill(self.toll)

    def _freeze(self, fault: Fault) -> None:
        self.toll.fault(fault.name)
        for victim in self._chosen(fault):
            victim.freeze(self.toll)
            self._until(fault.lasts, victim.thaw)

    def _hang(self, fault: Fault) -> None:
        self.toll.fault(fault.name)
        for victim in self._chosen(fault):
            victim.freeze(self.toll)
            self._hung.append((time.monotonic(), victim))

    def _start(self, fault: Fault) -> None:
        self.toll.fault(fault.name)
        if self.load.submit_aimed(AIM_S):
            answered = time.monotonic()
            service = victims.of_kind(self.site, "service")
            time.sleep(max(0.0, answered + fault.lasts - time.monotonic()))
            for victim in service:
                victim.kill(self.toll)

    def _disk(self, fault: Fault) -> None:
        if self._full is not None:
            return
        self.toll.fault(fault.name)
        outage = self._full = self.toll.outage("disk")
        self.site.disk.fill(fault.leave)

        def free() -> None:
            if fault.lasts > TOLD_S and not fault.leave:
                self._check_told("disk")
            self.site.disk.free()
            outage.end = time.time()
            self._full = None

        self._until(fault.lasts, free)

    def _database(self, fault: Fault) -> None:
        server = self.site.postgres
        if server is None or self._away is not None:
            return
        self.toll.fault(fault.name)
        outage = self._away = self.toll.outage("database")
        with contextlib.suppress(ProcessLookupError):
            server.take_away()

        def start() -> None:
            if fault.lasts > TOLD_S:
                self._check_told("database")
            server.launch()
            outage.end = time.time()
            self._away = None

        self._until(fault.lasts, start)

    def _stranger(self, fault: Fault) -> None:
        self.toll.fault(fault.name)
        self._shell.call(fault.variable, owned=fault.owned)

    def _check_told(self, what: str) -> None:
        """`/health`, where it answers at all, says more than that all is well."""
        until = time.monotonic() + ASK_S
        told = ""
        while time.monotonic() < until:
            with contextlib.suppress(httpx.HTTPError, ValueError, KeyError):
                answer = self.site.hub.http.get("/services/mlp/api/v1/health", timeout=2)
                told = str(answer.json()["status"])
                if told != "ok":
                    return
            time.sleep(0.3)
        if told:
            text = f"the {what} has been {'full' if what == 'disk' else 'away'} for a while, and /health says {told}"
            self.site.findings.add(Violation(f"{what}-untold", text), None, self.site.settings.log_dir)

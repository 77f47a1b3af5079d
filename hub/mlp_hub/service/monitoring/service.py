"""Metrics of the platform: collected where things happen and from caches, and rendered when somebody scrapes them.

A hub that nobody scrapes only adds to a few numbers: the library is not loaded, and the database is looked at for
samples over time only.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mlp_hub.background import BackgroundTask
from mlp_hub.domain.errors import Unavailable
from mlp_hub.executors.node_use import NodeUse
from mlp_hub.pools import WorkKind, run_in
from mlp_hub.service.config import MonitoringPolicy
from mlp_hub.service.health.problems import Problem
from mlp_hub.service.monitoring import gauges
from mlp_hub.service.monitoring import table as t
from mlp_hub.service.monitoring.events import PlatformEvents
from mlp_hub.service.monitoring.gauges import Family
from mlp_hub.service.monitoring.history import samples_of
from mlp_hub.service.monitoring.look import DatabaseLook, look_at
from mlp_hub.service.monitoring.measures import Vector
from mlp_hub.service.monitoring.operator_files import OperatorFiles, of_files
from mlp_hub.service.monitoring.parts import MonitoredParts
from mlp_hub.service.monitoring.people import PEOPLE_S, PeopleLook, look_at_people, of_people

if TYPE_CHECKING:
    from mlp_hub.service.monitoring.exposition import Exposition

LOOK_S = 10.0
"""Tuning: seconds for which a look at the database counts: fewer of them, for how late a change of a quota is seen."""
LATE = 1.5
"""Tuning: multiple of `LOOK_S` until which a scrape shows the last look while a new one is made: shorter scrapes, for how late a change is seen."""
RECENT_S = 30.0
"""Safety: seconds after which a look decides about no alert any more: while the database is away, the last one is only shown."""
TICK_S = 0.5
"""Tuning: seconds between two measurements of the event loop's lag: finer with less, cheaper with more."""
SHARED_S = 0.5
"""Tuning: seconds for which one text answers all scrapes: bounds the work of a scraper that asks without a pause."""


class Monitoring:
    """Metrics of one platform; `clock` gives seconds since the epoch, and `policy` says what else they show."""

    def __init__(self, parts: MonitoredParts, clock: Callable[[], float], policy: MonitoringPolicy) -> None:
        self.parts = parts
        self._policy = policy
        self._clock = clock
        self.version = ""
        self.events = PlatformEvents(clock)
        self.sources: list[Callable[[], Sequence[Family]]] = []
        """Further metrics of this replica, of parts that the service does not know."""
        self._exposition: Exposition | None = None
        self._look = DatabaseLook(float("-inf"))
        self._people = PeopleLook()
        self._people_looked = float("-inf")  # of time.monotonic
        self._files = OperatorFiles(policy.certificate, policy.backup)
        self._looked = float("-inf")  # of time.monotonic
        self._texts: dict[bool, tuple[float, tuple[bytes, str]]] = {}
        self._one, self._looking = asyncio.Lock(), asyncio.Lock()
        self._ticking = BackgroundTask(self._tick)
        self._renewing = BackgroundTask(self.look_around)
        events = self.events
        parts.db.on_commit(events.committed)
        parts.admission.watch.over.append(events.cycle)
        parts.admission.on_preempted.append(events.preempted)
        parts.board.on_moves.append(events.moved)
        parts.points.exporters.append(events.stored)
        parts.notices.on_sent.append(events.sent)

    def start(self) -> None:
        """Measure the event loop from now on."""
        self._ticking.start()

    def lead(self) -> None:
        """Note that this platform leads; its board forgot all listeners when it did not."""
        self.parts.board.on_change(self.events.changed)
        self.events.lease.add("acquired")

    def lost(self) -> None:
        """Note that this platform does not lead any more."""
        self.events.lease.add("lost")

    async def stop(self) -> None:
        """Measure no more."""
        await self._ticking.stop()
        await self._renewing.stop()

    async def scrape(self, accept: str) -> tuple[bytes, str]:
        """Return the text of all metrics and its type, as the `Accept` header asks. Raises `Unavailable`."""
        async with self._one:
            open_metrics = wants_open_metrics(accept)
            known = self._texts.get(open_metrics)
            if known is not None and time.monotonic() - known[0] < SHARED_S:
                return known[1]
            families = await self._families()
            # in a thread: a text of thousands of lines takes tens of milliseconds, in which all would wait
            made = await run_in(WorkKind.SCRAPES, self._render, families, open_metrics)
            self._texts[open_metrics] = time.monotonic(), made
            return made

    async def samples(self, metrics: frozenset[str]) -> dict[str, Vector]:
        """Return the present values of those metrics, for alert rules; a metric that cannot be read now is missing."""
        return samples_of(await self._families(for_rules=True), metrics)

    def counters(self, metrics: frozenset[str]) -> dict[str, Vector]:
        """Return the present values of those of the metrics that this process counts itself, from 0 at its start."""
        return samples_of(((one.row, one.samples()) for one in self.events.all()), metrics)

    def _render(self, families: Sequence[Family], open_metrics: bool) -> tuple[bytes, str]:
        if self._exposition is None:
            from mlp_hub.service.monitoring.exposition import Exposition  # noqa: PLC0415 - loads the library

            self._exposition = Exposition()
        return self._exposition.render(families, open_metrics=open_metrics)

    async def _families(self, *, for_rules: bool = False) -> list[Family]:
        """Return all metrics of this replica with their values.

        `for_rules`: those that alert rules can read, of the replica that leads. Amounts of tenants and of people are not among them,
        which cost most, and neither is a value from a look at the database that is too old.
        """
        parts, now = self.parts, self._clock()
        leads = for_rules or parts.leads()
        found = list(gauges.of_replica(parts, self.version, self._role(leads), await self._problems()))
        if leads:
            look = await (self.look_around() if for_rules else self._last_look())
            uses = await self.node_uses()
            recent = time.monotonic() - self._looked < RECENT_S
            found += gauges.of_queue(parts, now)
            found += gauges.of_shipping(parts.shipping(), now)
            if not for_rules:
                found += gauges.of_tenants(parts, look)
                found += of_people(await self._look_at_people(), parts.executor.namespace_of)
            elif recent:
                found.append(gauges.of_over(look))
            if recent or not for_rules:
                found += gauges.of_look(look, now)
            found += gauges.of_nodes(parts.nodes(), look)
            found += gauges.of_idle(parts, parts.nodes())
            if uses is not None or not for_rules:
                found += gauges.of_uses(uses or ())
            found += await self._of_operator()
            if self.events.last_cycle is not None:
                found.append((t.LAST_CYCLE, [((), self.events.last_cycle)]))
        for source in self.sources:
            found += source()
        found += [
            (one.row, one.samples())
            for one in self.events.all()
            if leads or one.row.of is t.MetricScope.REPLICA
        ]
        return found

    def _role(self, leads: bool) -> str:
        if not leads:
            return "follower"
        return "standalone" if self.parts.db.alone else "leader"

    async def _problems(self) -> Sequence[Problem]:
        try:
            return await self.parts.problems.now()
        except Unavailable:
            return ()

    async def _last_look(self) -> DatabaseLook:
        """Return a look that is not too late for a scrape; one that will soon be too late is renewed in the background."""
        age = time.monotonic() - self._looked
        if age >= LATE * LOOK_S:
            return await self.look_around()
        if age >= LOOK_S:
            self._renewing.start()
        return self._look

    async def look_around(self, *, newly: bool = False) -> DatabaseLook:
        """Look at the database, unless that was done lately and none is wanted `newly`; if it does not answer, return the last look."""
        async with self._looking:
            if newly or time.monotonic() - self._looked >= LOOK_S:
                parts, now = self.parts, self._clock()
                nodes = parts.nodes()
                try:
                    self._look = await parts.db.read(lambda tx: look_at(tx, nodes, now))
                except Unavailable:
                    return self._look  # the problem is a metric of its own; what is known is shown
                self._looked = time.monotonic()
                self.events.keep({tenant.name for tenant in self._look.tenants})
        return self._look

    async def _of_operator(self) -> list[Family]:
        """Return the metrics of the operator's files, and of a broker; one that is away now is missing."""
        found = list(of_files(await run_in(WorkKind.SCRAPES, self._files.look)))
        lag = self.parts.lag()
        if lag is not None:
            found.append((t.POINTS_LAG, [((), float(lag))]))
        return found

    async def _look_at_people(self) -> PeopleLook:
        """Look at people and their homes, unless that was done within a minute."""
        most = self._policy.people
        if most and time.monotonic() - self._people_looked >= PEOPLE_S:
            now = self._clock()
            try:
                self._people = await self.parts.db.read(lambda tx: look_at_people(tx, most, now))
            except Unavailable:
                return self._people
            self._people_looked = time.monotonic()
        return self._people

    async def node_uses(self, *, known: bool = False) -> Sequence[NodeUse] | None:
        """Return the real use of the nodes; None where it cannot be read. `known` asks no cluster for it."""
        try:
            return await self.parts.executor.node_use(known=known)
        except (OSError, Unavailable):
            return None  # not known now

    async def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + TICK_S
            await asyncio.sleep(TICK_S)
            self.events.loop_lag.observe(loop.time() - due)


def wants_open_metrics(accept: str) -> bool:
    """Return whether an `Accept` header asks for OpenMetrics 1 rather than for the text of Prometheus.

    The library's own choice is not used: it repeats words of the header in the type of the answer, and fails at some of them.
    """
    best = {"application/openmetrics-text": 0.0, "text/plain": 0.0}
    for part in accept.split(","):
        media, *parameters = (word.strip().lower() for word in part.split(";"))
        given = dict(parameter.split("=", 1) for parameter in parameters if "=" in parameter)
        old = media == "application/openmetrics-text" and not given.get("version", "1.").startswith("1.")
        if media in best and not old:
            best[media] = max(best[media], _quality(given.get("q", "1")))
    return best["application/openmetrics-text"] > 0 and max(best, key=best.__getitem__) != "text/plain"


def _quality(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return 0.0

"""Evaluation of the table of alert rules from the service's own numbers, without Prometheus, by the replica that leads.

What becomes of an alert, and the notices of it, are one transaction: a death loses and repeats none of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial

from mlp_api.platform import alerts as api
from mlp_hub.background import BackgroundTask
from mlp_hub.domain.errors import Unavailable
from mlp_hub.domain.jobs.job import FINAL
from mlp_hub.domain.notices.alert import Alert, AlertSilence, AlertState
from mlp_hub.domain.notices.notice import NoticeKind
from mlp_hub.domain.tenants.tenant import no_such_tenant
from mlp_hub.service.alerts.evaluator import AlertBook, AlertChanges, Key, OpenAlert
from mlp_hub.service.alerts.silences import Silences
from mlp_hub.service.alerts.telling import AlertTelling, WaitingNotices, is_inhibited, silence_of
from mlp_hub.service.alerts.wire import alert_to, rule_to, silence_to
from mlp_hub.service.monitoring.alert_rule import AlertRule
from mlp_hub.service.monitoring.alert_rules import RULES
from mlp_hub.service.monitoring.history import SampleHistory
from mlp_hub.service.monitoring.service import Monitoring
from mlp_hub.service.notices.outbox import Outbox
from mlp_hub.service.state.board import Board
from mlp_hub.service.support.units import maybe_when
from mlp_hub.store.tx import Tx

log = logging.getLogger(__name__)
EVERY_S = 15.0
"""Tuning: seconds between two evaluations: how late an alert begins, for the work of reading all numbers."""
SOON_S = 2.0
"""Tuning: seconds until the first evaluation after a restart with open alerts, or where others led a moment before: their values are not
known before it, and a replica that leads for seconds only evaluates too."""
IDLE_EVERY_S = 60.0
"""Tuning: the same while there are neither jobs nor alerts, and only nodes and the service itself can change."""
ADMINS_S = 300.0
"""Tuning: seconds for which the hub's answer counts who administers the platform: fewer questions, for how late a change is known."""
RESOLVED_KEPT_S = 7 * 86_400.0
"""Tuning: seconds for which alerts that are over are kept."""
RESOLVED_SHOWN = 100
"""Tuning: alerts that are over on one page."""

PlatformAdmins = Callable[[Sequence[str]], Awaitable[Collection[str]]]


class AlertService:
    """Alerts and their evaluation. `steady` measures durations, and is not set; `clock` gives seconds since the epoch."""

    def __init__(
        self,
        board: Board,
        monitoring: Monitoring,
        outbox: Outbox,
        *,
        clock: Callable[[], float],
        steady: Callable[[], float],
        rules: Sequence[AlertRule] = RULES,
        deliveries: Callable[[], api.AlertDelivery | None] = lambda: None,
    ) -> None:
        self._deliveries = deliveries
        self._db, self._monitoring, self._board, self._outbox = board.db, monitoring, board, outbox
        self._clock, self._steady = clock, steady
        self.platform_admins: PlatformAdmins | None = None
        """Returns who of these users administers the platform, and raises `Unavailable`; None: nobody knows."""
        self.silences = Silences(board.db, clock, {rule.name: rule for rule in rules})
        self.silences.on_made = self._repeat
        self._book = AlertBook(rules)
        self._history = SampleHistory(rules)
        self._admins: dict[str, tuple[bool, float]] = {}
        self._evaluated_at: float | None = None
        self._one = asyncio.Lock()
        self._task = BackgroundTask(self._run)

    async def start(self) -> None:
        """Take what is stored, and evaluate from now on."""
        now = self._clock()
        stored, silences = await self._db.read(
            lambda tx: ([*tx.alerts.open_ones(), *tx.alerts.owed_ones()], tx.alerts.silences(now))
        )
        unknown = self._book.load(stored, self._steady(), now)
        if unknown:
            await self._db.write(lambda tx: tx.alerts.remove([alert.id for alert in unknown]))
        self.silences.load(silences)
        self._history = SampleHistory(self._book.rules.values())
        # jobs that fail before the first evaluation count
        self._history.begin(self._steady(), self._monitoring.counters(self._history.metrics))
        self._task.start()

    async def stop(self) -> None:
        """Evaluate no more."""
        await self._task.stop()

    def forget_tenant(self, tenant: str) -> None:
        """Forget the alerts and silences of a tenant that is gone, whose rows went with it."""
        self._book.forget_tenant(tenant)
        self.silences.forget_tenant(tenant)

    def _repeat(self, silence: AlertSilence) -> None:
        """Know what is stored with a new silence: its people are told again once it is over."""
        now = self._clock()
        for one in self._book.open.values():
            if one.alert.state is AlertState.FIRING and silence.covers(one.alert, now):
                one.alert = silence.repeated(one.alert)

    # ---------------------------------------------------------- what is shown

    async def shown(self, tenant: str | None = None) -> api.AlertBoard:
        """Return the alerts of a tenant, as its administrators see them; without a tenant all, as the platform's do."""

        def work(tx: Tx) -> list[Alert]:
            if tenant is not None and tx.tenants.get(tenant) is None:
                raise no_such_tenant(tenant)
            return tx.alerts.resolved(tenant, RESOLVED_SHOWN)

        over = await self._db.read(work)
        firing = self._firing()
        mine = [one.alert for one in self._book.open.values() if tenant is None or one.alert.tenant == tenant]
        unmeasured = self._book.unmeasured()
        order = {AlertState.FIRING: 0, AlertState.PENDING: 1}
        severities = ["critical", "warning", "info"]
        rules = self._book.rules
        mine.sort(key=lambda a: (order[a.state], severities.index(rules[a.rule].severity), -a.since, a.id))
        silences = self.silences.current(tenant)
        alerts = [
            self._to_wire(
                alert, silences, firing, of_tenant=tenant is not None, measured=alert.id not in unmeasured
            )
            for alert in (*mine, *(alert for alert in over if alert.rule in rules))
        ]
        loud = [one.state for one in alerts if one.silence is None]
        return api.AlertBoard(
            firing=loud.count("firing"),
            pending=loud.count("pending"),
            silenced=sum(one.silence is not None and one.state == "firing" for one in alerts),
            evaluated_at=maybe_when(self._evaluated_at),
            alerts=alerts,
            silences=[silence_to(one) for one in silences],
            rules=[rule_to(rule) for rule in rules.values() if tenant is None or rule.of_tenant],
            delivery=self._deliveries() if tenant is None else None,
        )

    def _to_wire(
        self,
        alert: Alert,
        silences: Sequence[AlertSilence],
        firing: set[str],
        *,
        of_tenant: bool,
        measured: bool,
    ) -> api.Alert:
        open_one = alert.state is not AlertState.RESOLVED
        silence = silence_of(alert, silences, self._clock(), tenant=of_tenant) if open_one else None
        return alert_to(
            self._book.rules[alert.rule],
            alert,
            silence=silence,
            inhibited=open_one and is_inhibited(alert, firing),
            measured=measured,
        )

    def _firing(self) -> set[str]:
        return {one.alert.rule for one in self._book.open.values() if one.alert.state is AlertState.FIRING}

    # ---------------------------------------------------------- evaluation

    async def evaluate(self) -> None:
        """Evaluate all rules once, and tell the people whom it concerns. Raises `Unavailable`."""
        async with self._one:
            samples = await self._monitoring.samples(self._history.metrics)
            now, steady = self._clock(), self._steady()
            self._history.take(steady, now, samples)
            rules = self._book.rules
            found = {name: rule.instances(self._history) for name, rule in rules.items()}
            covered = {name: self._history.covers(rule) for name, rule in rules.items()}
            changes = self._book.evaluate(found, covered, steady, now)
            await self._store(changes, now)
            self._evaluated_at = now

    async def _store(self, changes: AlertChanges, now: float) -> None:
        moved = {one.key: (one, new) for one, new in changes.moved}
        firing = self._firing() | {new.rule for _, new in moved.values() if new.state is AlertState.FIRING}
        due = partial(self._due, moved.keys(), firing, now)
        if not (changes.begun or moved or changes.dropped or any(due())):
            return
        admins = await self._platform_admins()
        async with self.silences.turn:  # somebody may have made a silence before the hub answered
            current, (owed, fires) = self.silences.current(None), due()

            def work(tx: Tx) -> tuple[list[tuple[OpenAlert, Alert]], list[Alert], set[str]]:
                telling = AlertTelling(
                    tx,
                    self._outbox,
                    self._book.rules,
                    silences=current,
                    firing=firing,
                    admins=admins,
                    now=now,
                )
                over = [telling.tell(alert, alert) for alert in owed]
                stored = [(one, tx.alerts.add(one.alert)) for one in changes.begun]
                for one, new in (*moved.values(), *((one, one.alert) for one in fires)):
                    stored.append((one, telling.tell(one.alert, new, measured=one.measured)))
                tx.alerts.remove([one.alert.id for one in changes.dropped])
                return stored, over, telling.users

            stored, over, users = await self._db.write(work)
            self._book.apply(stored, changes.dropped)
            self._book.take_over(over)
        self._outbox.notify(users)

    def _due(
        self, moved: Collection[Key], firing: Collection[str], now: float
    ) -> tuple[list[Alert], list[OpenAlert]]:
        """Return the alerts that are over, and those that fire, with a notice that waits for nothing else."""
        current = self.silences.current(None)

        def is_due(alert: Alert) -> bool:
            return any(WaitingNotices.of(alert, current, firing, now))

        fires = (one for one in self._book.open.values() if one.alert.state is AlertState.FIRING)
        return (
            [alert for alert in self._book.owed.values() if is_due(alert)],
            [one for one in fires if one.key not in moved and is_due(one.alert)],
        )

    async def _platform_admins(self) -> set[str] | None:
        """Return the platform's administrators with a subscription, as last known while the hub is away; None: nobody knows them."""
        wanting = {*self._outbox.wanting(NoticeKind.ALERT), *self._outbox.wanting(NoticeKind.RESOLVED)}
        steady = self._steady()
        self._admins = {user: known for user, known in self._admins.items() if user in wanting}
        unsure = sorted(
            user for user in wanting if user not in self._admins or steady - self._admins[user][1] >= ADMINS_S
        )
        if unsure and self.platform_admins is not None:
            try:
                admins = await self.platform_admins(unsure)
            except Unavailable:
                pass  # the last answers count
            else:
                self._admins |= {user: (user in admins, steady) for user in unsure}
        if not wanting <= self._admins.keys():
            return None
        return {user for user, (admin, _) in self._admins.items() if admin}

    async def _run(self) -> None:
        soon = bool(self._book.open) or self._monitoring.parts.lease.takeovers > 1
        while True:
            await asyncio.sleep(SOON_S if soon else EVERY_S if self._is_busy() else IDLE_EVERY_S)
            soon = False
            try:
                await self.evaluate()
            except Unavailable as error:  # also a lost lease: then this task is stopped
                log.warning("the alert rules could not be evaluated: %s", error)
            except Exception:  # it is tried again soon
                log.exception("evaluating the alert rules failed")

    def _is_busy(self) -> bool:
        phases = self._board.tallies.phases
        return bool(self._book.open) or any(n for phase, n in phases.items() if phase not in FINAL)


def purge(tx: Tx, now: float) -> None:
    """Delete alerts that were over long ago, and silences that are over."""
    tx.alerts.delete_before(now - RESOLVED_KEPT_S)
    tx.alerts.delete_expired_silences(now)

"""Notices of alerts: one when an alert fires and one when it is over, at a rate that people can read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from mlp_hub.domain.notices.alert import Alert, AlertSilence, AlertState
from mlp_hub.domain.notices.notice import OF_ALERTS, Notice, NoticeKind
from mlp_hub.domain.tenants.tenant import Role
from mlp_hub.service.alerts.wire import description_of, summary_of
from mlp_hub.service.monitoring.alert_rule import AlertRule
from mlp_hub.service.monitoring.alert_rules import INHIBITING
from mlp_hub.service.notices.outbox import Outbox
from mlp_hub.service.support import limits
from mlp_hub.store.tx import Tx
from mlp_language.message import Message, msg

HOUR_S = 3600.0
"""Given: seconds of an hour."""


def is_inhibited(alert: Alert, firing: Collection[str]) -> bool:
    """Return whether an alert of one of the rules that fire inhibits this one."""
    return any(source in firing and source != alert.rule for source in INHIBITING)


def silence_of(
    alert: Alert, silences: Sequence[AlertSilence], now: float, *, tenant: bool
) -> AlertSilence | None:
    """Return the silence that keeps an alert from the platform's administrators, or from those of the `tenant`; None: they are told.

    A silence of a team does not keep anything from the platform's administrators.
    """
    fitting = (one for one in silences if one.covers(alert, now) and (tenant or not one.of_team))
    return next(fitting, None)


class AlertTelling:
    """Notices of one evaluation, stored in its transaction."""

    def __init__(
        self, outbox: Outbox, silences: Sequence[AlertSilence], admins: Collection[str] | None, now: float
    ) -> None:
        """`admins` are the platform's administrators with a subscription; None: nobody knows them now, so they are told later."""
        self._outbox, self._silences, self._admins, self._now = outbox, silences, admins, now
        self._counts: dict[str, int] = {}

    def tell(
        self, tx: Tx, rule: AlertRule, alert: Alert, *, inhibited: bool, measured: bool = True
    ) -> tuple[Alert, set[str]]:
        """Store the notices of an alert that fires or is over; return it with its recipients, and the users with new notices.

        `measured`: its value is known since the last restart.
        """
        if inhibited:
            return alert, set()
        over = alert.state is AlertState.RESOLVED
        kind = NoticeKind.RESOLVED if over else NoticeKind.ALERT
        users: set[str] = set()
        if (
            over is alert.told_platform
            and self._admins is not None
            and not self._silenced(alert, tenant=False)
        ):
            users |= set(self._admins)
            alert = replace(alert, told_platform=True)
        if alert.tenant and over is alert.told_tenant and not self._silenced(alert, tenant=True):
            users |= {one.user for one in tx.members.of_tenant(alert.tenant) if one.role is Role.ADMIN}
            alert = replace(alert, told_tenant=True)
        text = description_of(rule, alert, measured=measured)
        if over:
            text = msg("This is over: {alert}", alert=summary_of(rule, alert))
        return alert, self._store(tx, sorted(users & set(self._outbox.wanting(kind))), kind, alert, text)

    def _silenced(self, alert: Alert, *, tenant: bool) -> bool:
        return silence_of(alert, self._silences, self._now, tenant=tenant) is not None

    def _store(
        self,
        tx: Tx,
        users: Sequence[str],
        kind: NoticeKind,
        alert: Alert,
        description: Message,
    ) -> set[str]:
        told = set()
        for user in users:
            if user not in self._counts:
                self._counts[user] = tx.notices.number_since(user, OF_ALERTS, self._now - HOUR_S)
            if self._counts[user] >= limits.ALERT_NOTICES:
                continue
            self._counts[user] += 1
            text = description
            if self._counts[user] == limits.ALERT_NOTICES:
                text = msg(
                    "There are more alerts than are sent within an hour; the page of the alerts has all."
                )
            tx.notices.add([Notice(0, user, kind, "", alert.rule, 1, alert.tenant, self._now, text)])
            told.add(user)
        return told

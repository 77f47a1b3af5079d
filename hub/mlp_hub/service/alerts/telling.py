"""Notices of alerts: one when an alert fires and one when it is over, at a rate that people can read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

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


class WaitingNotices(NamedTuple):
    """Whether a notice of an alert waits only for its sending: to the platform's administrators, and to those of its tenant."""

    platform: bool
    tenant: bool

    @classmethod
    def of(
        cls, alert: Alert, silences: Sequence[AlertSilence], firing: Collection[str], now: float
    ) -> WaitingNotices:
        """Return whose notice that it fires, or that it is over, is due at `now`; `firing` are the rules that fire."""
        if is_inhibited(alert, firing):
            return cls(False, False)
        platform, tenant = alert.told_platform, alert.told_tenant
        if alert.state is not AlertState.RESOLVED:
            platform, tenant = not platform or alert.again_platform, not tenant or alert.again_tenant
        return cls(
            platform and silence_of(alert, silences, now, tenant=False) is None,
            tenant and bool(alert.tenant) and silence_of(alert, silences, now, tenant=True) is None,
        )


class AlertTelling:
    """Notices of one evaluation, stored in its transaction; `users` have new ones."""

    def __init__(
        self,
        tx: Tx,
        outbox: Outbox,
        rules: Mapping[str, AlertRule],
        *,
        silences: Sequence[AlertSilence],
        firing: Collection[str],
        admins: Collection[str] | None,
        now: float,
    ) -> None:
        """`admins` are the platform's administrators with a subscription; None: nobody knows them now, so they are told later."""
        self._tx, self._outbox, self._rules, self._now = tx, outbox, rules, now
        self._silences, self._firing, self._admins = silences, firing, admins
        self._counts: dict[str, int] = {}
        self.users: set[str] = set()

    def tell(self, old: Alert, new: Alert, *, measured: bool = True) -> Alert:
        """Store an alert that fires or is over, with its notices; return it with its recipients. `old` is what is stored.

        Who was told that it fires is told once that it is over: after the end of a silence, if there is one then. `measured`: its
        value is known since the last restart.
        """
        waiting = WaitingNotices.of(new, self._silences, self._firing, self._now)
        over, told, recipients = new.state is AlertState.RESOLVED, new, set[str]()
        if waiting.platform and self._admins is not None:
            recipients |= set(self._admins)
            told = replace(told, told_platform=not over, again_platform=False)
        if waiting.tenant:
            members = self._tx.members.of_tenant(new.tenant)
            recipients |= {one.user for one in members if one.role is Role.ADMIN}
            told = replace(told, told_tenant=not over, again_tenant=False)
        if told != old:
            self._tx.alerts.change(told)
        kind = NoticeKind.RESOLVED if over else NoticeKind.ALERT
        recipients &= set(self._outbox.wanting(kind))
        if recipients:
            rule = self._rules[new.rule]
            text = description_of(rule, new, measured=measured)
            if over:
                text = msg("This is over: {alert}", alert=summary_of(rule, new))
            self._store(sorted(recipients), kind, new, text)
        return told

    def _store(self, users: Sequence[str], kind: NoticeKind, alert: Alert, description: Message) -> None:
        for user in users:
            if user not in self._counts:
                self._counts[user] = self._tx.notices.number_since(user, OF_ALERTS, self._now - HOUR_S)
            if self._counts[user] >= limits.ALERT_NOTICES:
                continue
            self._counts[user] += 1
            text = description
            if self._counts[user] == limits.ALERT_NOTICES:
                text = msg(
                    "There are more alerts than are sent within an hour; the page of the alerts has all."
                )
            self._tx.notices.add([Notice(0, user, kind, "", alert.rule, 1, alert.tenant, self._now, text)])
            self.users.add(user)

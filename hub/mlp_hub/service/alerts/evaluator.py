"""States of alerts: which begin, fire and end at one evaluation. Pure: nothing is changed until the caller has stored the result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from mlp_hub.domain.notices.alert import ALERT_MACHINE, Alert, AlertState
from mlp_hub.service.monitoring.alert_rule import AlertRule
from mlp_hub.service.monitoring.measures import LabelSet, Vector

KEEP_S = 120.0
"""Tuning: seconds for which a condition must be over before its alert ends: fewer notices of one that comes and goes, for a later end."""
GRACE_S = 60.0
"""Tuning: seconds for which a pending alert must be seen after a restart before it fires: as `for` cannot be measured across one."""
MOST_OF_RULE = 500
"""Safety: alerts of one rule at a time; further ones are not followed: bounds memory, writes and notices."""
Key = tuple[str, LabelSet]
"""Identity of an alert: its rule and labels."""


@dataclass(slots=True)
class OpenAlert:
    """Alert that is not over. `held_from` and `gone_from` are times of a clock that nobody sets; None: its condition holds.

    `measured`: its value is one that this process has measured, and not one of before a restart.
    """

    alert: Alert
    held_from: float
    gone_from: float | None = None
    measured: bool = True

    @property
    def key(self) -> Key:
        """Its identity."""
        return self.alert.rule, self.alert.labels


@dataclass(slots=True)
class AlertChanges:
    """Result of an evaluation: alerts that begin, that become something else, and pending ones that are forgotten."""

    begun: list[OpenAlert] = field(default_factory=list)
    moved: list[tuple[OpenAlert, Alert]] = field(default_factory=list)
    dropped: list[OpenAlert] = field(default_factory=list)


class AlertBook:
    """The alerts that are not over; `owed`: those that are over, and whose notice of the end still waits."""

    def __init__(self, rules: Iterable[AlertRule]) -> None:
        self.rules: Mapping[str, AlertRule] = {rule.name: rule for rule in rules}
        self.open: dict[Key, OpenAlert] = {}
        self.owed: dict[int, Alert] = {}

    def load(self, alerts: Iterable[Alert], steady: float, now: float) -> list[Alert]:
        """Take the stored alerts after a start; return those whose rule is not there any more."""
        self.open, self.owed, unknown = {}, {}, []
        for alert in alerts:
            rule = self.rules.get(alert.rule)
            if rule is None:
                unknown.append(alert)
                continue
            if alert.is_owed:
                self.owed[alert.id] = alert
                continue
            held = min(max(now - alert.since, 0.0), max(rule.for_s - GRACE_S, 0.0))
            one = OpenAlert(alert, steady - held, measured=False)
            self.open[one.key] = one
        return unknown

    def evaluate(
        self, found: Mapping[str, Vector | None], covered: Mapping[str, bool], steady: float, now: float
    ) -> AlertChanges:
        """Return the changes. `found` has the values for which each rule holds, None where they are not known now: then nothing changes.

        `covered` tells whether the windows of a rule are full. While they are not, as after a restart, none of its alerts ends.
        """
        changes = AlertChanges()
        for name, values in found.items():
            if values is None:
                continue
            open_ones = {labels: one for (rule, labels), one in self.open.items() if rule == name}
            room = MOST_OF_RULE - len(open_ones)
            for labels, value in values.items():
                known = open_ones.pop(labels, None)
                if known is None and room > 0:
                    changes.begun.append(self._begun(name, labels, value, steady, now))
                    room -= 1
                elif known is not None:
                    self._holds(known, value, steady, now, changes)
            for gone in open_ones.values():
                self._gone(gone, steady, now, changes, settled=covered[name])
        return changes

    def _begun(self, name: str, labels: LabelSet, value: float, steady: float, now: float) -> OpenAlert:
        tenant = dict(labels).get("tenant", "") if self.rules[name].of_tenant else ""
        return OpenAlert(Alert(0, name, labels, tenant, AlertState.PENDING, value, now), steady)

    def _holds(self, one: OpenAlert, value: float, steady: float, now: float, changes: AlertChanges) -> None:
        alert = one.alert
        one.gone_from, one.measured = None, True
        one.alert = replace(alert, value=value)
        if alert.state is AlertState.PENDING and steady - one.held_from >= self.rules[alert.rule].for_s:
            ALERT_MACHINE.check(alert.state, AlertState.FIRING, rule=alert.rule)
            changes.moved.append((one, replace(alert, state=AlertState.FIRING, value=value, fired_at=now)))

    def _gone(
        self, one: OpenAlert, steady: float, now: float, changes: AlertChanges, *, settled: bool
    ) -> None:
        alert = one.alert
        if alert.state is AlertState.PENDING:
            changes.dropped.append(one)
            return
        if not settled:
            return
        if one.gone_from is None:
            one.gone_from = steady
        if steady - one.gone_from >= KEEP_S:
            ALERT_MACHINE.check(alert.state, AlertState.RESOLVED, rule=alert.rule)
            changes.moved.append((one, replace(alert, state=AlertState.RESOLVED, resolved_at=now)))

    def unmeasured(self) -> set[int]:
        """Return the numbers of the alerts whose value is not known since a restart."""
        return {one.alert.id for one in self.open.values() if not one.measured}

    def apply(self, stored: Iterable[tuple[OpenAlert, Alert]], dropped: Iterable[OpenAlert]) -> None:
        """Take what was stored: each alert as it is now, and those that were forgotten."""
        for one, alert in stored:
            one.alert = alert
            if alert.state is AlertState.RESOLVED:
                self.open.pop(one.key, None)
                self.take_over([alert])
            else:
                self.open[one.key] = one
        for one in dropped:
            self.open.pop(one.key, None)

    def take_over(self, stored: Iterable[Alert]) -> None:
        """Take alerts that are over as they are stored now."""
        for alert in stored:
            if alert.is_owed:
                self.owed[alert.id] = alert
            else:
                self.owed.pop(alert.id, None)

    def forget_tenant(self, tenant: str) -> None:
        """Forget the alerts of a tenant that is gone."""
        self.open = {key: one for key, one in self.open.items() if one.alert.tenant != tenant}
        self.owed = {number: one for number, one in self.owed.items() if one.tenant != tenant}

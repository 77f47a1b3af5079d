"""Alerts and silences on the wire, and the sentences of alerts."""

from __future__ import annotations

from collections import defaultdict
from math import isfinite

import msgspec

from mlp_api.localized import Text
from mlp_api.platform import alerts as api
from mlp_hub.domain.notices.alert import Alert, AlertSilence, AlertState
from mlp_hub.service.monitoring.alert_rule import AlertRule
from mlp_hub.service.monitoring.alert_rules import COUNT
from mlp_hub.service.support.units import maybe_when, when
from mlp_language.message import Arg, Message, Span, msg


def value_of(rule: AlertRule, value: float) -> Arg:
    """Return a value or a threshold of a rule in its unit."""
    if not isfinite(value):
        return str(value)
    if rule.unit == "%":
        return f"{value * 100:.3g} %"
    if rule.unit == COUNT:
        return float(round(value))
    return Span(value) if rule.unit == "s" else float(f"{value:.6g}")


def _words(template: str, rule: AlertRule, alert: Alert) -> Message:
    given: dict[str, Arg] = defaultdict(str, {**dict(alert.labels), "value": value_of(rule, alert.value)})
    return Message(template, {name: given[name] for name in _holes(template)})


def _holes(template: str) -> list[str]:
    """Return the names of a template's holes."""
    return [part.partition("}")[0] for part in template.split("{")[1:]]


def summary_of(rule: AlertRule, alert: Alert) -> Message:
    """Return an alert's headline."""
    return _words(rule.summary, rule, alert)


def description_of(rule: AlertRule, alert: Alert, *, measured: bool = True) -> Message:
    """Return an alert's sentence with its value; `measured`: that is known since the last restart."""
    if not measured:
        return msg(
            "{summary}. The value is not known yet since the restart of the service.",
            summary=summary_of(rule, alert),
        )
    return _words(rule.description, rule, alert)


def alert_to(
    rule: AlertRule, alert: Alert, *, silence: AlertSilence | None, inhibited: bool, measured: bool = True
) -> api.Alert:
    """Return an alert as one reader sees it; `measured`: its value is known since the last restart."""
    value = Message("{text}", {"text": value_of(rule, alert.value)})
    state_since = {AlertState.FIRING: alert.fired_at, AlertState.RESOLVED: alert.resolved_at}.get(alert.state)
    return api.Alert(
        id=alert.id,
        rule=rule.name,
        severity=msgspec.convert(rule.severity, api.AlertSeverity),
        state=alert.state.value,
        tenant=alert.tenant,
        labels=dict(alert.labels),
        summary=Text(summary_of(rule, alert)),
        description=Text(description_of(rule, alert, measured=measured)),
        meaning=Text(Message(rule.meaning)),
        value=Text(value if measured else msg("not known yet")),
        threshold=Text(Message("{text}", {"text": value_of(rule, rule.threshold)})),
        below=rule.op == "<",
        since=when(alert.since),
        state_since=when(alert.since if state_since is None else state_since),
        fired_at=maybe_when(alert.fired_at),
        resolved_at=maybe_when(alert.resolved_at),
        silence=None if silence is None else silence.id,
        inhibited=inhibited,
    )


def rule_to(rule: AlertRule) -> api.AlertRule:
    """Return a rule."""
    return api.AlertRule(
        name=rule.name,
        title=Text(Message(rule.summary, dict.fromkeys(_holes(rule.summary), "…"))),
        severity=msgspec.convert(rule.severity, api.AlertSeverity),
        of_team=rule.of_tenant,
        after_s=rule.for_s,
        meaning=Text(Message(rule.meaning)),
    )


def silence_to(one: AlertSilence) -> api.AlertSilence:
    """Return a silence."""
    return api.AlertSilence(
        id=one.id,
        rule=one.rule,
        tenant=one.tenant,
        of_team=one.of_team,
        reason=one.reason,
        until=when(one.ends_at),
        made_by=one.made_by,
        made_at=when(one.made_at),
    )

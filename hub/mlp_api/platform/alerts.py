"""Alerts on the wire: conditions that last, and silences of them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta

from mlp_api.localized import Text
from mlp_api.types import LINE_PATTERN, Name, Request, Response

Instant = Annotated[datetime, Meta(tz=True)]
AlertSeverity = Literal["critical", "warning", "info"]
AlertPhase = Literal["pending", "firing", "resolved"]
RuleName = Annotated[str, Meta(max_length=64, pattern=LINE_PATTERN)]


class TeamSilenceCreate(Request):
    """New silence of a tenant's alerts, up to `until`: of one rule, or without `rule` of each."""

    reason: Annotated[str, Meta(max_length=500, pattern=LINE_PATTERN)]
    until: Instant
    rule: RuleName = ""


class SilenceCreate(TeamSilenceCreate):
    """New silence, up to `until`: of a rule, of a tenant's alerts, or of that rule for that tenant."""

    tenant: Name = ""


class AlertSilence(Response):
    """Silence. One `of_team` keeps alerts only from the administrators of the tenant. The reason is plain text."""

    id: int
    rule: str
    tenant: str
    of_team: bool
    reason: str
    until: datetime
    made_by: str
    made_at: datetime


class Alert(Response):
    """Alert. `since` is when its condition began to hold, and `state_since` when its state began, which pages and `mlp` show.

    The value is in words that it is not known, until it is measured after a restart of the service. `below`: its value is below the threshold, instead of above.
    `silence` is the id of the silence that keeps it from the reader. `inhibited`: nobody is notified while a larger alert fires.
    """

    id: int
    rule: str
    severity: AlertSeverity
    state: AlertPhase
    tenant: str
    labels: dict[str, str]
    summary: Text
    description: Text
    meaning: Text
    value: Text
    threshold: Text
    below: bool
    since: datetime
    state_since: datetime
    fired_at: datetime | None
    resolved_at: datetime | None
    silence: int | None
    inhibited: bool


class AlertRule(Response):
    """Rule of alerts: it fires once its condition has held for `after_s` seconds. `of_team`: each of its alerts is about one tenant.

    `title` is the headline of its alerts, with dots for a node, a team or another object.
    """

    name: str
    title: Text
    severity: AlertSeverity
    of_team: bool
    after_s: int
    meaning: Text


class AlertDelivery(Response):
    """Notifications that the site's Alertmanager could not deliver. `failed` is their number in the last hour, by the way to deliver.

    `unknown`: it was not asked yet, or it does not answer. `checked_at` is its last answer.
    """

    state: Literal["ok", "failed", "unknown"]
    text: Text
    failed: dict[str, int]
    checked_at: datetime | None


class AlertBoard(Response):
    """Alerts that are not over and the last ones that are, silences, and the rules that are evaluated.

    `firing` and `pending` count alerts without a silence. `evaluated_at` is the time of the last evaluation. `delivery` is null of a
    tenant, and where the hub knows no Alertmanager.
    """

    firing: int
    pending: int
    silenced: int
    evaluated_at: datetime | None
    alerts: list[Alert]
    silences: list[AlertSilence]
    rules: list[AlertRule]
    delivery: AlertDelivery | None = None

"""Alerts: conditions of the platform or of a tenant that last, and silences, for which somebody said why and until when."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from mlp_hub.domain.machine import Machine
from mlp_language.message import msg


class AlertState(StrEnum):
    """State of an alert."""

    PENDING = "pending"  # its condition holds, not yet for as long as its rule says
    FIRING = "firing"  # it has held for that long; the people whom it concerns are told
    RESOLVED = "resolved"  # it holds no more; they are told that too


ALERT_MACHINE = Machine(
    {
        AlertState.PENDING: frozenset({AlertState.FIRING}),
        AlertState.FIRING: frozenset({AlertState.RESOLVED}),
        AlertState.RESOLVED: frozenset(),
    },
    msg("alert {rule} is {old} and cannot become {new}"),
)
"""Moves of an alert; one that is pending is forgotten as soon as its condition holds no more."""


@dataclass(frozen=True, slots=True)
class Alert:
    """Alert of a rule with these labels. Times are seconds since the epoch; `tenant` is empty where it is about the platform.

    `told_platform` and `told_tenant`: the platform's administrators, or those of the tenant, were told that it fires, and not yet that it is
    over. `again_platform` and `again_tenant`: they are told again if it fires after a silence.
    """

    id: int
    rule: str
    labels: tuple[tuple[str, str], ...]
    tenant: str
    state: AlertState
    value: float
    since: float
    fired_at: float | None = None
    resolved_at: float | None = None
    told_platform: bool = False
    told_tenant: bool = False
    again_platform: bool = False
    again_tenant: bool = False

    @property
    def is_owed(self) -> bool:
        """Whether it is over, and somebody who was told that it fires does not know that."""
        return self.state is AlertState.RESOLVED and (self.told_platform or self.told_tenant)


@dataclass(frozen=True, slots=True)
class AlertSilence:
    """Silence of alerts up to `ends_at`: of a rule, empty for each; of a tenant, empty for any.

    One `of_team` was made by an administrator of the tenant, and silences only what that tenant's administrators are told.
    """

    id: int
    rule: str
    tenant: str
    of_team: bool
    reason: str
    made_by: str
    made_at: float
    ends_at: float

    def covers(self, alert: Alert, now: float) -> bool:
        """Return whether an alert matches and the silence is not over."""
        return now < self.ends_at and self.rule in ("", alert.rule) and self.tenant in ("", alert.tenant)

    def repeated(self, alert: Alert) -> Alert:
        """Return an alert that fires as one of which the people whom the silence is for are told again.

        They are told once the silence is over, by itself or by hand, if the alert still fires. Alertmanager does the same when
        it repeats its notifications.
        """
        return replace(
            alert,
            again_tenant=alert.told_tenant,
            again_platform=alert.again_platform if self.of_team else alert.told_platform,
        )

"""Limits that refusals name: those that an operator can set, and those that are the same everywhere.

The reference page of limits lists both. Any other number is beside the code that uses it, and is not on that page.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """Limits that an operator can set: each field is the setting of its name, in its unit, with this default."""

    apps_per_user: int = 50
    app_keys: int = 50
    app_start_s: float = 300.0
    app_retry_max_s: float = 300.0
    app_visit_hours: float = 12.0
    sweeps_per_user: int = 500
    environments_per_tenant: int = 100
    runtimes_per_tenant: int = 50
    secrets_per_owner: int = 50
    windows_per_tenant: int = 100
    window_days: int = 30
    window_days_ahead: int = 366
    what_if_runs: int = 2
    what_if_jobs: int = 20_000
    what_if_nodes: int = 10_000
    what_if_s: float = 60.0
    what_if_ram: int = 2048
    session_days: float = 14.0
    keep_decisions_days: float = 14.0
    kubernetes_prewarmed_days: float = 7.0


DEFAULTS = ServiceLimits()
"""The limits of an installation that sets none."""

WINDOWS_IN_ALL = 1000
"""Limit of teams: booked windows of all teams that are not over; each is checked when a quota or the nodes change."""
ANNOUNCEMENTS = 20
"""Limit of teams: announcements to everybody, and to the members of one team, that are not over."""
ANNOUNCEMENT_DAYS = 366
"""Limit of teams: days until the end of an announcement."""
ALERT_NOTICES = 20
"""Limit of teams: notices of alerts that a person gets within an hour; the last of them says that the page has the rest."""
SILENCES = 50
"""Limit of teams: silences of alerts by the platform's administrators, and by those of one team, that are not over."""
SILENCE_DAYS = 30
"""Limit of teams: days until the end of a silence."""
OFFERS_OF_USER = 8
"""Limit of jobs: previews of one user that are computed at a time, waiting ones included."""
UNCONFIRMED_S = 120.0
"""Limit of notebooks: seconds that a start reserves its resources before the server confirms them."""
WHAT_IF_EXPORTS = 2
"""Limit of what-if: exports of a scenario at a time, of all administrators together, one of each."""

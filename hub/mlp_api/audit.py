"""What was done by whom, and what the scheduler decided; the rest of the contract is in `types`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from mlp_api.types import Response
from mlp_api.whatif import Decision


class AuditEntry(Response):
    """Who did what to which object: `tenant.update` to `red`. `detail` depends on the action.

    `actor` is a user's name, or `system` for what the hub did by itself.
    """

    id: int
    time: datetime
    actor: str
    action: str
    object: str
    tenant: str | None
    detail: dict[str, Any]


class JobDecision(Response):
    """A decision of the scheduler with the job that it is about."""

    user: str
    job: str
    run: int
    tenant: str
    decision: Decision

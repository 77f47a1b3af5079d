"""Actions of users and decisions of the scheduler; the rest of the contract is in `types`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from mlp_api.types import Response
from mlp_api.whatif import Decision


class AuditEntry(Response):
    """Action of an actor on an object, such as `tenant.update` on `red`.

    `actor` is a user's name, or `system` for actions of the hub itself. `detail` depends on the action.
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

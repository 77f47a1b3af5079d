"""Actions of users and decisions of the scheduler; the rest of the contract is in `types`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from mlp_api.platform.whatif import Decision
from mlp_api.types import Response


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


class AuditHead(Response):
    """End of the audit log's chain of hashes.

    `link` is the number of the last link, `hash` its hash. The chain begins at `begins`; older entries are outside of it. All
    three are null until the hub has begun the chain.
    `written` is the time of the newest head that this service wrote outside of the database, and `written_link` its link.
    `checked` is the time of the last `mlp-hub audit --verify`, and `sound` its result; null where nobody has run it.
    """

    link: int | None
    hash: str | None
    begins: datetime | None
    written: datetime | None
    written_link: int | None
    checked: datetime | None
    sound: bool | None


class JobDecision(Response):
    """A decision of the scheduler with the job that it is about."""

    user: str
    job: str
    run: int
    tenant: str
    decision: Decision

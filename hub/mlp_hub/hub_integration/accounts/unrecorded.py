"""Entries for the audit log that the platform's service could not take yet; they are in the hub's database until it has them.

A right that is taken away is taken away at once. Its entry is stored in the same transaction, so a kill loses none.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from jupyterhub import orm
from sqlalchemy import Column, Integer, String, Text

from mlp_hub.service.support.backoff import wait_after
from mlp_spawner.errors import ServiceRefused, ServiceUnreachable

log = logging.getLogger(__name__)
RETRY_S, RETRY_MOST_S = 1.0, 30.0
"""Tuning: seconds until the next try, at first and at most: how late an entry comes, for the load of a service that is away."""
Deliver = Callable[[str, dict[str, Any]], Awaitable[None]]
_delivering: set[asyncio.Task[None]] = set()


class UnrecordedEnd(orm.Base):  # type: ignore[misc]  # jupyterhub is untyped
    """End of a token that the audit log does not have."""

    __tablename__ = "mlp_unrecorded_ends"
    id = Column(Integer, primary_key=True, autoincrement=True)
    user = Column(String(255), nullable=False)
    fields = Column(Text, nullable=False)


def ensure_table(db: Any) -> None:
    """Make it where it is not there yet."""
    UnrecordedEnd.__table__.create(db.bind, checkfirst=True)


def keep(db: Any, user: str, fields: dict[str, Any]) -> None:
    """Keep an entry; the caller commits, with the change."""
    db.add(UnrecordedEnd(user=user, fields=json.dumps(fields)))


def begin(db: Any, deliver: Deliver, *, retry_s: float = RETRY_S) -> None:
    """Deliver what is kept, again and again until nothing is left. Does nothing if that is in progress."""
    if not _delivering:
        with suppress(RuntimeError):  # without an event loop nothing is served, and nothing changes
            task = asyncio.get_running_loop().create_task(_deliver_all(db, deliver, retry_s))
            _delivering.add(task)
            task.add_done_callback(_delivering.discard)


async def _deliver_all(db: Any, deliver: Deliver, retry_s: float) -> None:
    failures, after = 0, 0
    while (row := _next(db, after)) is not None:
        number, user, fields = row.id, row.user, json.loads(row.fields)
        try:
            await deliver(user, fields)
        except (ServiceUnreachable, ServiceRefused) as error:
            log.warning("the end of a token of %s is not in the audit log yet: %s", user, error)
            if isinstance(error, ServiceRefused) and _next(db, number) is not None:
                after = number  # it holds up none of those behind it
                continue
            failures, after = failures + 1, 0
            await asyncio.sleep(wait_after(failures, retry_s, RETRY_MOST_S))
            continue
        db.query(UnrecordedEnd).filter(UnrecordedEnd.id == number).delete()
        db.commit()
        if not after:
            failures = 0
        elif _next(db, after) is None:  # only refused ones are left
            failures, after = failures + 1, 0
            await asyncio.sleep(wait_after(failures, retry_s, RETRY_MOST_S))


def _next(db: Any, after: int) -> Any:
    """Return the first entry that follows a number; None if there is none."""
    return db.query(UnrecordedEnd).filter(UnrecordedEnd.id > after).order_by(UnrecordedEnd.id).first()

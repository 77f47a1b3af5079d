"""Outbox of the hub: changes of rights that the platform's service could not record yet, for its audit log.

An entry is stored in the transaction of its change, so a kill loses none. Entries are delivered in their order. Each has a
key, so one that is delivered twice is recorded once.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from jupyterhub import orm
from sqlalchemy import Column, Float, Integer, String, Text, inspect, text
from sqlalchemy.exc import SQLAlchemyError

from mlp_hub.hub_integration.providers.records import ended_logins
from mlp_hub.service.support.backoff import wait_after
from mlp_spawner.errors import ServiceRefused, ServiceUnreachable

log = logging.getLogger(__name__)
RETRY_S, RETRY_MOST_S = 1.0, 30.0
"""Tuning: seconds until the next try, at first and at most: how late an entry comes, for the load of a service that is away."""
PATIENCE_S = 5.0
"""Tuning: seconds that the removal of a right waits for the service. Later its entry is kept, and the right is removed."""
SAY_AGAIN_S = 3600.0
"""Seconds after which the log names a trouble again that lasts."""
LATE_S = 10.0
"""Tuning: seconds after which an entry names the time of its change: the log has the time of its recording anyway."""


class RightsRecorder(Protocol):
    """Part of the platform's service that is needed; each call has the fields of its request."""

    async def token_ended(self, user: str, **fields: object) -> None:
        """Record that a token of the user's ends."""

    async def changing(self, user: str, **fields: object) -> None:
        """Record a change of the user's account."""

    async def report_identity(self, user: str, **fields: object) -> None:
        """Record a change by the login's provider."""


class OutboxEntry(orm.Base):  # type: ignore[misc]  # jupyterhub is untyped
    """Change that the service has not recorded; `fields` are JSON, `at` is its time in seconds since 1970 (null: unknown)."""

    __tablename__ = "mlp_outbox"
    id = Column(Integer, primary_key=True, autoincrement=True)
    kind = Column(String(32), nullable=False)
    user = Column(String(255), nullable=False)
    fields = Column(Text, nullable=False)
    at = Column(Float)


@dataclass(frozen=True, slots=True)
class OutboxNews:
    """Change of somebody's rights to tell the service: `kind` is one of `KINDS`, `fields` those of the request."""

    kind: str
    user: str
    fields: dict[str, Any]


def news(kind: str, user: str, **fields: object) -> OutboxNews:
    """Return a change with a key, by which the service records it once."""
    return OutboxNews(kind, user, {**fields, "once": secrets.token_hex(16)})


# -------------------------------------------------------------------------- kinds


async def _token_ended(service: RightsRecorder, _db: Any, user: str, fields: dict[str, Any]) -> None:
    await service.token_ended(user, **fields)


async def _account(service: RightsRecorder, _db: Any, user: str, fields: dict[str, Any]) -> None:
    await service.changing(user, **fields)


async def _group_admin(service: RightsRecorder, _db: Any, user: str, fields: dict[str, Any]) -> None:
    # a report of this kind changes nobody's places
    await service.report_identity(user, ended="session", **fields)


async def _login_ended(service: RightsRecorder, db: Any, user: str, fields: dict[str, Any]) -> None:
    # they may be in again by now, and then keep their places
    ended = "disabled" if user in ended_logins.of(db, "disabled") else "session"
    await service.report_identity(user, ended=ended, **fields)


KINDS: dict[str, Callable[[RightsRecorder, Any, str, dict[str, Any]], Awaitable[None]]] = {
    "token_ended": _token_ended,
    "account": _account,
    "group_admin": _group_admin,
    "login_ended": _login_ended,
}
"""Delivery of an entry by kind: the end of a token, a change of an account, and two changes by the login's provider.

These are an admin right by a group, and the end of an account.
"""


# ---------------------------------------------------------------------- the table


def open_table(db: Any) -> None:
    """Make the table if it is missing, and move the entries of versions that had two other tables into it."""
    ended_logins.ensure_table(db)
    OutboxEntry.__table__.create(db.bind, checkfirst=True)
    known = set(inspect(db.connection()).get_table_names())
    moved: list[OutboxNews] = []
    if "mlp_unrecorded_ends" in known:
        rows = db.execute(text('SELECT "user", fields FROM mlp_unrecorded_ends ORDER BY id'))
        moved += [news("token_ended", row.user, **json.loads(row.fields)) for row in rows]
        db.execute(text("DELETE FROM mlp_unrecorded_ends"))
    if "mlp_unreported" in known:
        for row in db.execute(text("SELECT name, admin, tokens FROM mlp_unreported ORDER BY name")):
            if row.tokens is not None:
                moved.append(news("login_ended", row.name, tokens=row.tokens))
            if row.admin is not None:
                moved.append(news("group_admin", row.name, admin=bool(row.admin)))
        db.execute(text("DELETE FROM mlp_unreported"))
    for one in moved:
        db.add(_entry(one, None))
    # the old tables stay, empty: a hub of an earlier version may still write to them while this one takes over
    db.commit()


def keep(db: Any, told: OutboxNews) -> None:
    """Keep an entry and begin to deliver it; the caller commits it with its change, before it awaits anything."""
    db.add(_entry(told, time.time()))
    DELIVERY.begin(db)


def _entry(told: OutboxNews, at: float | None) -> OutboxEntry:
    return OutboxEntry(kind=told.kind, user=told.user, fields=json.dumps(told.fields), at=at)


# ----------------------------------------------------------------------- delivery


class LastTrouble:
    """Writes what keeps an entry from its place to the log once an hour, and not at each of its tries."""

    def __init__(self, steady: Callable[[], float] = time.monotonic) -> None:
        self._steady = steady
        self._logged: dict[int, tuple[str, float]] = {}

    def warn(self, entry: int, template: str, *values: object) -> None:
        """Log a warning about an entry (0: about all), unless the same one was logged within the last hour."""
        text, now = template % values, self._steady()
        before, at = self._logged.get(entry, ("", 0.0))
        if text != before or now - at >= SAY_AGAIN_S:
            log.warning("%s", text)
            self._logged[entry] = (text, now)

    def forget(self, entry: int) -> None:
        """Forget an entry that was delivered."""
        self._logged.pop(entry, None)


class OutboxDelivery:
    """Delivers the entries of this process' hub, from `install` on; `retry_s` is the first wait after a failure."""

    def __init__(self) -> None:
        self._service: RightsRecorder | None = None
        self._retry_s = RETRY_S
        self._task: asyncio.Task[None] | None = None
        self._woken = self._rests = asyncio.Event()
        self._trouble = LastTrouble()
        self._answered = True  # in the last round

    def install(self, service: RightsRecorder | None, *, retry_s: float = RETRY_S) -> None:
        """Deliver to this service; None: deliver nothing."""
        self._service, self._retry_s = service, retry_s

    def begin(self, db: Any) -> None:
        """Begin to deliver all entries, or try again at once if that is in progress. It ends when none is left."""
        if self._service is None:
            return
        with suppress(RuntimeError):  # without an event loop nothing is served, and nothing changes
            loop = asyncio.get_running_loop()
            if self._task is None or self._task.done():
                self._woken, self._rests = asyncio.Event(), asyncio.Event()
                self._task = loop.create_task(self._deliver_all(db, self._service))
            self._woken.set()
            self._rests.clear()

    async def tell(self, db: Any, told: OutboxNews) -> bool:
        """Tell the service now; return False if the caller has to keep the entry: the service or others are behind."""
        if self._service is None or _next(db, 0) is not None:
            return False
        try:
            async with asyncio.timeout(PATIENCE_S):
                await KINDS[told.kind](self._service, db, told.user, told.fields)
        except (ServiceUnreachable, ServiceRefused, TimeoutError) as error:
            log.warning("%s of %s is recorded later: %s", told.kind, told.user, error or "no answer yet")
            return False
        return True

    async def catch_up(self, db: Any) -> bool:
        """Try to deliver all entries before something else is recorded, for `PATIENCE_S` at most.

        Return False if entries wait because the service does not answer: nothing else may be recorded before them. Entries that the
        service refuses hold up nothing.
        """
        if _next(db, 0) is None:
            return True
        self.begin(db)
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                await self._rests.wait()
                return self._answered
        return False

    async def _deliver_all(self, db: Any, service: RightsRecorder) -> None:
        failures = 0
        while True:
            self._woken.clear()
            try:
                delivered, left = await _round(db, service, self._trouble)
                failures, self._answered = 0 if delivered else failures, True
            except (ServiceUnreachable, SQLAlchemyError) as error:
                self._trouble.warn(0, "changes of rights are not in the audit log yet: %s", error)
                if isinstance(error, SQLAlchemyError):
                    db.rollback()
                left, self._answered = True, False
            if not (
                left and self._woken.is_set()
            ):  # else somebody waits for a round that begins after their call
                self._rests.set()
            if not left:
                return
            failures += 1
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_after(failures, self._retry_s, RETRY_MOST_S)):
                    await self._woken.wait()


async def _round(db: Any, service: RightsRecorder, trouble: LastTrouble) -> tuple[bool, bool]:
    """Deliver all entries in their order; return whether one was delivered, and whether refused ones are left.

    A refused entry holds up none of those behind it. Raises `ServiceUnreachable`.
    """
    delivered, refused = False, 0
    while (row := _next(db, refused)) is not None:
        number = row.id
        if await _delivered(service, db, row, trouble):
            trouble.forget(0)
            trouble.forget(number)
            db.query(OutboxEntry).filter(OutboxEntry.id == number).delete()
            db.commit()
            delivered = True
        else:
            refused = number
    return delivered, bool(refused)


DELIVERY = OutboxDelivery()
"""Delivery of this process: JupyterHub's handlers are patched, and have no other place for it."""


async def _delivered(service: RightsRecorder, db: Any, row: OutboxEntry, trouble: LastTrouble) -> bool:
    """Deliver one entry; return False if the service refuses it. Raises `ServiceUnreachable`."""
    kind, user, at = str(row.kind), str(row.user), row.at
    try:
        deliver, fields = KINDS[kind], json.loads(str(row.fields))
        if at is not None and time.time() - at > LATE_S:
            fields["at"] = at
        await deliver(service, db, user, fields)
    except (ServiceRefused, LookupError, TypeError, ValueError) as error:  # or nobody can read it
        trouble.warn(int(row.id), "%s of %s is not in the audit log yet: %s", kind, user, error)
        return False
    return True


def _next(db: Any, after: int) -> Any:
    """Return the first entry that follows a number; None if there is none."""
    return db.query(OutboxEntry).filter(OutboxEntry.id > after).order_by(OutboxEntry.id).first()

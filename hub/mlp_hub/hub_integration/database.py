"""Writes of the hub to its database, and its answer during an outage of it.

The answer reports the outage, and never that a login or a token is unknown. A database that can be
read but not written, as on a full disk, still identifies callers that only read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import wraps
from typing import Any

from jupyterhub.handlers import BaseHandler
from sqlalchemy import event
from sqlalchemy.engine import Engine
from sqlalchemy.exc import SQLAlchemyError
from tornado import web

RETRY_S = 2
SAFE_METHODS = ("GET", "HEAD")


class DatabaseAway(web.HTTPError):
    """Error for a database that does not answer; the caller cannot be identified."""

    def __init__(self) -> None:
        super().__init__(503, "The hub's database does not answer. Try again in some seconds.")
        self.headers = {"Retry-After": str(RETRY_S)}


def install() -> None:
    """Have all handlers of this process find out who asks in this way, and all connections log ahead.

    JupyterHub's own way takes an error of the database for nobody being logged in, which it answers with 403.
    """
    event.listen(Engine, "connect", _log_ahead)
    prepare = BaseHandler.prepare

    async def guarded(self: Any) -> None:
        await _identify(self)
        await prepare(self)

    BaseHandler.prepare = guarded
    undo_failed_writes()


def undo_failed_writes() -> None:
    """Have all handlers undo a write that failed before they answer.

    All requests share one session. JupyterHub undoes errors of the database alone, and a driver raises others too: a
    `UnicodeEncodeError` for half a surrogate pair. Until the session is rolled back, every request that uses it fails.
    """
    for name in ("send_error", "finish"):
        setattr(BaseHandler, name, _undoing(getattr(BaseHandler, name)))


def _undoing(answer: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(answer)
    def undoing(self: Any, *args: Any, **kw: Any) -> Any:
        if not self.db.is_active:
            self.db.rollback()
        return answer(self, *args, **kw)

    return undoing


def _log_ahead(connection: Any, _record: Any) -> None:
    """Let a commit wait for the disk once and not four times: the hub answers nobody meanwhile."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")  # a commit that was answered survives a power cut


def _unrecorded(_obj: object, _timestamp: object = None) -> bool:
    return False


async def _identify(handler: Any) -> None:
    # what write_error asks for
    handler.expanded_scopes, handler.parsed_scopes = set(), {}
    for again in (True, False):
        try:
            await handler.get_current_user()
        except SQLAlchemyError as error:
            handler.db.rollback()
            if not again:
                handler.log.warning("The database does not answer: %s", error)
                raise DatabaseAway from error
            del handler._jupyterhub_user  # noqa: SLF001 - a connection may have died while nobody used it
            if handler.request.method in SAFE_METHODS:
                handler._record_activity = _unrecorded  # noqa: SLF001 - the only write on the way to who asks
        except Exception:
            handler.log.exception("It could not be found out who asks")  # who is nobody from here on
            return
        else:
            return

"""Concern of the current work: the request that caused it, its user, and its job.

The value belongs to one task of asyncio, and tasks and threads that it starts inherit it. So lines of a log and answers
carry the id of a request without a parameter of each function.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

HEADER = "X-Request-ID"
"""Given: header with the id of a request, as gateways and other services name it."""
WELL_FORMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{7,63}")
"""Limit of requests: an id has 8 to 64 letters, digits, dots, underscores and dashes; the proxy has the same rule."""


@dataclass(frozen=True, slots=True)
class Concern:
    """Request, user and job that work is about; empty: unknown, or none."""

    request_id: str = ""
    user: str = ""
    job: str = ""


NOTHING = Concern()
_current: ContextVar[Concern] = ContextVar("mlp_hub_concern", default=NOTHING)


def current() -> Concern:
    """Return what the current work concerns."""
    return _current.get()


def concerns(request_id: str, user: str = "", job: str = "") -> None:
    """Set what the current task concerns, until it ends or this is called again."""
    _current.set(Concern(request_id, user, job))


@contextmanager
def about(request_id: str, user: str = "", job: str = "") -> Iterator[None]:
    """Set what the current task concerns for the duration of a block."""
    token = _current.set(Concern(request_id, user, job))
    try:
        yield
    finally:
        _current.reset(token)


def new_id() -> str:
    """Return an id that no other request has: 16 hexadecimal digits."""
    return os.urandom(8).hex()


def accepted(given: str | None) -> str:
    """Return a given id if it is well-formed, and a new one otherwise.

    Call it only for a header of the proxy: other callers could take the id of somebody else's request.
    """
    return given if given is not None and WELL_FORMED.fullmatch(given) else new_id()

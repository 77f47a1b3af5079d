"""Locks that end: none is held longer than an hour without being renewed, and there are never too many."""

from __future__ import annotations

from typing import Any

from wsgidav.dav_error import HTTP_INSUFFICIENT_STORAGE, DAVError
from wsgidav.lock_man.lock_storage import LockStorageDict

from mlp_language.message import msg

LONGEST_S = 3600
"""Safety: seconds for which a lock holds unless it is renewed; who asks for more gets so much."""
MOST = 20_000
"""Safety: locks in all: bounds memory."""


class BoundedLocks(LockStorageDict):  # type: ignore[misc]  # wsgidav is untyped
    """Locks in memory: they protect work in progress, which ends with this process too."""

    def create(self, path: str, lock: dict[str, Any]) -> Any:
        """Make one."""
        self._make_room()
        lock["timeout"] = _bounded(lock.get("timeout"))
        return super().create(path, lock)

    def refresh(self, token: str, *, timeout: float) -> Any:
        """Renew one."""
        return super().refresh(token, timeout=_bounded(timeout))

    def _make_room(self) -> None:
        held = self._dict or {}
        if len(held) < MOST:
            return
        for token in [key for key in held if not key.startswith("URL2TOKEN:")]:
            self.get(token)  # which forgets one that has ended
        if len(held) >= MOST:
            raise DAVError(
                HTTP_INSUFFICIENT_STORAGE, msg("there are too many locks; release some, or wait an hour")
            )


def _bounded(asked: float | None) -> float:
    return LONGEST_S if asked is None or not 0 < asked <= LONGEST_S else asked

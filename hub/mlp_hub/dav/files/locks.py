"""Locks that end: none is held longer than an hour without being renewed, and there are never too many."""

from __future__ import annotations

from typing import Any

from wsgidav.dav_error import HTTP_INSUFFICIENT_STORAGE, HTTP_REQUEST_ENTITY_TOO_LARGE, DAVError
from wsgidav.lock_man.lock_manager import normalize_lock_root
from wsgidav.lock_man.lock_storage import LockStorageDict

from mlp_language.message import msg

LONGEST_S = 3600
"""Limit of data: seconds for which a WebDAV lock holds unless it is renewed."""
MOST = 20_000
"""Safety: locks in all: bounds memory."""
MOST_OF_USER = 1000
"""Limit of data: WebDAV locks in the datasets of one user."""
OWNER_BYTES = 2048
"""Safety: bytes of a client's description of itself in a lock: kept as long as the lock."""
_AT = "URL2TOKEN:"
"""Given: prefix of the key of a path, as WsgiDAV keeps locks."""


class BoundedLocks(LockStorageDict):  # type: ignore[misc]  # wsgidav is untyped
    """Locks in memory: they protect work in progress, which ends with this process too."""

    def create(self, path: str, lock: dict[str, Any]) -> Any:
        """Make one."""
        said = len(lock.get("owner") or b"")
        if said > OWNER_BYTES:
            raise DAVError(
                HTTP_REQUEST_ENTITY_TOO_LARGE,
                msg(
                    "the owner that the lock names has {n} bytes; at most {most} are kept",
                    n=said,
                    most=OWNER_BYTES,
                ),
            )
        self._make_room(lock.get("principal"))
        lock["timeout"] = _bounded(lock.get("timeout"))
        return super().create(path, lock)

    def refresh(self, token: str, *, timeout: float) -> Any:
        """Renew one."""
        return super().refresh(token, timeout=_bounded(timeout))

    def get_lock_list(
        self, path: str, *, include_root: bool, include_children: bool, token_only: bool
    ) -> list[Any]:
        """Return the locks of a path, and of the paths below it.

        WsgiDAV's own function goes through all locks while it forgets one that has ended.
        """
        at = normalize_lock_root(path)
        self._lock.acquire_read()
        try:
            found = list((self._dict or {}).get(f"{_AT}{at}", ())) if include_root else []
            if include_children:
                below = f"{_AT}{at.rstrip('/')}/"
                found += [t for key, ts in (self._dict or {}).items() if key.startswith(below) for t in ts]
        finally:
            self._lock.release()
        locks = [lock for token in found if (lock := self.get(token)) is not None]
        return [lock["token"] for lock in locks] if token_only else locks

    def _make_room(self, user: str | None) -> None:
        if self._has_room(user):
            return
        for token in self._tokens():
            self.get(token)  # which forgets one that has ended
        if not self._has_room(user):
            raise DAVError(
                HTTP_INSUFFICIENT_STORAGE, msg("there are too many locks; release some, or wait an hour")
            )

    def _tokens(self) -> list[str]:
        return [key for key in list(self._dict or ()) if not key.startswith(_AT)]

    def _has_room(self, user: str | None) -> bool:
        held = self._dict or {}
        mine = sum(1 for token in self._tokens() if held.get(token, {}).get("principal") == user)
        return len(held) < MOST and mine < MOST_OF_USER


def _bounded(asked: float | None) -> float:
    return LONGEST_S if asked is None or not 0 < asked <= LONGEST_S else asked

"""Removals of jobs' directories in turn: a few at a time, and one at a time per user.

Programs can leave millions of files, whose removal takes minutes. A removal that waits here uses no
turn and no thread.
"""

from __future__ import annotations

MOST = 2
"""Safety: removals at a time, so that one user's leave others a way."""


class Clearing:
    """The jobs whose directories are being removed, and those that wait for that; by uid, with their users."""

    def __init__(self) -> None:
        self._busy: dict[str, str] = {}
        self._waiting: dict[str, str] = {}

    def begin(self, uid: str, user: str) -> bool:
        """Whether a job's directory may be removed now; else it waits, and `end` names it when its turn has come."""
        if len(self._busy) < MOST and user not in self._busy.values():
            self._busy[uid] = user
            self._waiting.pop(uid, None)
            return True
        self._waiting[uid] = user
        return False

    def end(self, uid: str) -> list[str]:
        """Note that a removal is over, whatever became of it; return whose may begin."""
        self._busy.pop(uid, None)
        users = set(self._busy.values())
        found: list[str] = []
        for other, user in self._waiting.items():
            if len(self._busy) + len(found) >= MOST:
                break
            if user not in users:
                users.add(user)
                found.append(other)
        for other in found:
            del self._waiting[other]
        return found

    def clear(self) -> None:
        """Forget who waits."""
        self._waiting.clear()

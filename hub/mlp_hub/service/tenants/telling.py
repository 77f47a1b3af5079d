"""Who is told of what is asked of them, and of the answers: the part of notices that requests know."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from mlp_hub.domain.notices.notice import AskedFor, NoticeKind
from mlp_hub.store import Tx
from mlp_language.message import Message


class TellsPeople(Protocol):
    """Stores what is told in the transaction of what it tells of, returns to whom, and hears when that is durable."""

    def asked(
        self, tx: Tx, users: Iterable[str], what: tuple[NoticeKind, AskedFor], tenant: str, text: Message
    ) -> set[str]: ...
    def told(self, users: set[str]) -> None: ...


class Nobody:
    """Nobody is told."""

    def asked(
        self, tx: Tx, users: Iterable[str], what: tuple[NoticeKind, AskedFor], tenant: str, text: Message
    ) -> set[str]:
        """Tell nobody."""
        del tx, users, what, tenant, text
        return set()

    def told(self, users: set[str]) -> None:
        """Do nothing."""

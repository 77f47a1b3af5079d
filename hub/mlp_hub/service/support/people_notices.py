"""Notices to people: the part of the outbox that rooms below the notices know."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from mlp_hub.domain.notices.notice import AskedFor, NoticeKind
from mlp_hub.store import Tx
from mlp_language.message import Message


class PeopleNotices(Protocol):
    """Interface for notices to users about other things than jobs."""

    def asked(
        self, tx: Tx, users: Iterable[str], what: tuple[NoticeKind, AskedFor], tenant: str, text: Message
    ) -> set[str]:
        """Store notices in the transaction of their cause; return the users who have a subscription."""
        ...

    def notify(self, users: set[str]) -> None:
        """Request a look at these users, once that transaction is durable."""
        ...


class SubscribedNotices(PeopleNotices, Protocol):
    """Interface for notices, with the users who have a subscription to a kind of them."""

    def wanting(self, kind: NoticeKind) -> list[str]:
        """Return these users."""
        ...

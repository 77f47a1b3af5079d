"""Notices of requests and their answers: the part of notices that requests know."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from mlp_hub.domain.notices.notice import AskedFor, NoticeKind
from mlp_hub.store import Tx
from mlp_language.message import Message


class PeopleNotices(Protocol):
    """Interface for notices of requests.

    It stores them in the transaction of their requests, returns the users, and is called when that is
    durable.
    """

    def asked(
        self, tx: Tx, users: Iterable[str], what: tuple[NoticeKind, AskedFor], tenant: str, text: Message
    ) -> set[str]: ...
    def notify(self, users: set[str]) -> None: ...

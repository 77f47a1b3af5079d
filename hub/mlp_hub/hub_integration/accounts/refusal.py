"""Refusal of a change of an account."""

from __future__ import annotations

from dataclasses import dataclass

from mlp_language.message import Message


@dataclass(eq=False)
class AccountRefused(Exception):  # noqa: N818 - what happened
    """An account that cannot be made or changed like this. `status` is the HTTP status of the answer."""

    message: Message
    reason: str = "Invalid"
    status: int = 400
    retry_after: int = 0  # seconds

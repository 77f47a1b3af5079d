"""Secrets on the wire: their contents are set once, and never returned."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta

from mlp_api.types import Name, Request, Response

KEY_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]{0,63}$(?!\n)"
KeyName = Annotated[str, Meta(pattern=KEY_PATTERN, max_length=64)]
KeyValue = Annotated[str, Meta(min_length=1, max_length=8192)]


class SecretSet(Request):
    """Contents of a secret, by name.

    An object store needs `access_key_id` and `secret_access_key`, and can need `session_token`.
    """

    keys: Annotated[dict[KeyName, KeyValue], Meta(min_length=1, max_length=16)]


class Secret(Response):
    """Secret without its values: its name, the names of its keys, who set it, and when."""

    name: Name
    keys: list[str]
    tenant: str | None
    user: str | None
    changed_at: datetime
    changed_by: str

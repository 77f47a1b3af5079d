"""Notices as JSON, posted to an address."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

from mlp_hub.outbound.posting import post


def place_of(address: str) -> tuple[str, int] | None:
    """Return host and port of an address; None if it is not one of the web."""
    parts = urlsplit(address)
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        return None
    return parts.hostname, parts.port or (443 if parts.scheme.lower() == "https" else 80)


def send(asked: dict[str, Any]) -> dict[str, Any]:
    """Post what is told; of the answer only its status is read."""
    try:
        status = post(asked["address"], json.dumps(asked["data"]).encode(), "application/json")
    except TimeoutError:
        return {"why": "silent"}
    return {} if 200 <= status < 300 else {"why": "status", "status": status}

"""Notices as JSON, posted to an address."""

from __future__ import annotations

import json
from typing import Any

from mlp_hub.outbound.posting import post


def send(asked: dict[str, Any]) -> dict[str, Any]:
    """Post what is told; of the answer only its status is read."""
    try:
        status = post(asked["address"], json.dumps(asked["data"]).encode(), "application/json")
    except TimeoutError:
        return {"why": "silent"}
    return {} if 200 <= status < 300 else {"why": "status", "status": status}

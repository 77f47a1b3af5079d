"""Notices as JSON, posted to an address."""

from __future__ import annotations

import json
from typing import Any

import certifi
import urllib3

SILENT_S = 10.0
"""Safety: seconds for which a connection is waited for, and an answer's first line."""


def send(asked: dict[str, Any]) -> dict[str, Any]:
    """Post what is told; of the answer only its status is read, and no redirect is followed."""
    pool = urllib3.PoolManager(
        timeout=urllib3.Timeout(connect=SILENT_S, read=SILENT_S),
        retries=False,
        cert_reqs="CERT_REQUIRED",
        ca_certs=certifi.where(),
    )
    try:
        answer = pool.request(
            "POST",
            asked["address"],
            body=json.dumps(asked["data"]).encode(),
            headers={"Content-Type": "application/json", "User-Agent": "mlp-hub"},
            redirect=False,
            preload_content=False,
        )
    except urllib3.exceptions.TimeoutError:
        return {"why": "silent"}
    status = answer.status
    answer.close()
    return {} if 200 <= status < 300 else {"why": "status", "status": status}

"""Notifications that Alertmanager could not deliver, read from its own metrics. Its answer is text; nothing of it is taken but numbers and names."""

from __future__ import annotations

import math
import re
from typing import Any

from mlp_hub.outbound.posting import ExportTarget

FAILED = "alertmanager_notifications_failed_total"
"""Given: name of the metric; it is there from the start, with zeros."""
MOST = 50
"""Safety: ways to deliver of one answer."""
_SAMPLE = re.compile(rf"{FAILED}\{{([^}}\n]{{0,500}})\}} ([0-9.eE+]{{1,30}})(?: [0-9]+)?")
_HOW = re.compile(r'(?:^|,)integration="([a-z0-9_]{1,40})"')


def prepare() -> None:
    """Load what is needed later."""


def send(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the notifications that failed since Alertmanager began, by the way to deliver, as `failed`; or `why` they are not known."""
    data = asked["data"]
    answer = ExportTarget(data["headers"], data["ca"]).ask("GET", asked["address"].rstrip("/") + "/metrics")
    if found := answer.outcome():
        return found
    failed = failed_in(answer.body) if answer.whole else {}
    return {"failed": failed} if failed else {"why": "refused", "status": answer.status}


def failed_in(body: bytes) -> dict[str, float]:
    """Return the numbers by the way to deliver; empty if it is not the text of Alertmanager's metrics."""
    found: dict[str, float] = {}
    for line in body.decode("utf-8", "replace").splitlines():
        if (sample := _SAMPLE.fullmatch(line)) is None or (how := _HOW.search(sample[1])) is None:
            continue
        try:
            value = float(sample[2])
        except ValueError:
            continue
        if math.isfinite(value) and (how[1] in found or len(found) < MOST):
            found[how[1]] = found.get(how[1], 0.0) + value
    return found

"""Curves over time, as the stand-in service has them: made by the service's own code of invented samples."""

from __future__ import annotations

import math
import time
from typing import Any

import msgspec

from mlp_hub.domain.over_time.grains import StepSums, steps_of
from mlp_hub.domain.over_time.sums import SpanSums, wait_bucket
from mlp_hub.service.over_time.wire import over_time_to

Json = dict[str, Any]
GAP = range(20, 27)
"""Steps in which the service did not run."""


class FrontOverTime:
    """Some busy days with a gap; `empty`: the service has just begun, `idle`: nobody ever did anything, `begun`: the first step with samples."""

    def __init__(self) -> None:
        self.empty = self.idle = False
        self.begun = 0

    def answer(self, tenant: str | None, query: Json) -> Json:
        """Answer a question."""
        span = str(query.get("span", "hour"))
        steps = steps_of(span, int(query["step"]) if "step" in query else None, time.time())
        n = 0 if self.empty else 2
        sums = [SpanSums() if self.idle else _sums(at, tenant is None) for at in range(steps.number)]
        found = [StepSums(0 if at in GAP or at < self.begun else n, one) for at, one in enumerate(sums)]
        made: Json = msgspec.to_builtins(
            over_time_to(tenant, span, steps, found, (16_000, 65_536, 4000 if tenant is None else 2000))
        )
        return made


def _sums(at: int, whole: bool) -> SpanSums:
    """Return invented sums of two samples."""
    wave = (1 + math.sin(at / 9)) / 2
    busy = int(wave * (14_000 if whole else 6000))
    held, used = (2 * busy, 2 * busy * 4, 4000 if at % 40 < 25 else 0), (int(busy * 1.2), busy * 3, 3000)
    most = (busy + 500, busy * 4 + 900, 2000)
    waiting = max(0, int(6 * wave) - 1)
    return SpanSums(
        samples=2,
        held=held,
        held_most=most,
        used=used,
        used_most=used,
        gpu_samples=2 if whole else 0,
        limit=(16_000 if at > 60 else 12_000, 65_536, 4000),
        waiting=2 * waiting,
        waiting_most=waiting,
        running=2 * int(4 * wave),
        running_most=int(4 * wave),
        reasons={"WaitingForQuota": waiting, "WaitingForResources": waiting // 2} if waiting else {},
        waits={wait_bucket(20 + 400 * wave): 2, wait_bucket(900 * wave): 1} if at % 3 else {},
        ends=(at % 5, 1 if at % 11 == 0 else 0, 1 if at % 17 == 0 else 0),
        requests=int(300 * wave),
        errors=int(300 * wave) // 90,
        latency={10: int(250 * wave), 50: int(45 * wave), 500: int(5 * wave)},
    )

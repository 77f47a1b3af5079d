"""Conversion of sums by step to the wire."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from mlp_api.platform import over_time as api
from mlp_hub.domain.dimensions import BY_NAME
from mlp_hub.domain.over_time.grains import StepSums, TimeSteps
from mlp_hub.domain.over_time.sums import (
    DIMENSIONS,
    ENDS,
    SpanSums,
    latency_quantile,
    together,
    wait_quantile,
)
from mlp_hub.service.support.units import when

V = TypeVar("V")
Limits = tuple[int | None, int | None, int | None]
DIGITS = 3
"""Given: decimals of amounts, which are whole thousandths."""


def over_time_to(
    tenant: str | None, span: str, steps: TimeSteps, found: Sequence[StepSums], limit: Limits
) -> api.OverTime:
    """Return an answer; `limit` holds where no sample tells another one."""

    def each(value: Callable[[SpanSums], V | None]) -> list[V | None]:
        return [value(one.sums) if one.samples else None for one in found]

    def mean(value: Callable[[SpanSums], int]) -> list[float | None]:
        return [round(value(one.sums) / one.samples, DIGITS) if one.samples else None for one in found]

    reasons = sorted({reason for one in found for reason in one.sums.reasons})
    ends = {name: each(lambda sums, at=at: sums.ends[at]) for at, name in enumerate(ENDS)}  # type: ignore[misc]
    return api.OverTime(
        tenant=tenant,
        span=span,
        since=when(steps.since),
        until=when(steps.since + steps.step * len(found)),
        step=steps.step,
        samples=[one.samples for one in found],
        amounts=[_amounts(at, found, limit[at]) for at in range(len(DIMENSIONS))],
        waiting=mean(lambda sums: sums.waiting),
        running=mean(lambda sums: sums.running),
        reasons=[
            api.ReasonOverTime(reason=reason, waiting=mean(lambda sums, r=reason: sums.reasons.get(r, 0)))  # type: ignore[misc]
            for reason in reasons
        ],
        admitted=each(lambda sums: sum(sums.waits.values())),
        wait_p50_s=each(lambda sums: _seconds(sums, 0.5)),
        wait_p90_s=each(lambda sums: _seconds(sums, 0.9)),
        **ends,
        requests=each(lambda sums: sums.requests),
        errors=each(lambda sums: sums.errors),
        latency_p50_ms=each(lambda sums: latency_quantile(sums.latency, 0.5)),
        latency_p99_ms=each(lambda sums: latency_quantile(sums.latency, 0.99)),
        total=_total(together(one.sums for one in found)),
    )


def _total(sums: SpanSums) -> api.EventsOverTime:
    finished, failed, cancelled = sums.ends
    return api.EventsOverTime(
        admitted=sum(sums.waits.values()),
        wait_p50_s=_seconds(sums, 0.5),
        wait_p90_s=_seconds(sums, 0.9),
        finished=finished,
        failed=failed,
        cancelled=cancelled,
        requests=sums.requests,
        errors=sums.errors,
        latency_p50_ms=latency_quantile(sums.latency, 0.5),
        latency_p99_ms=latency_quantile(sums.latency, 0.99),
    )


def _amounts(at: int, found: Sequence[StepSums], limit: int | None) -> api.AmountsOverTime:
    dimension = DIMENSIONS[at]
    scale = BY_NAME[dimension].scale

    def most(value: Callable[[SpanSums], int]) -> list[float | None]:
        return [round(value(one.sums) / scale, DIGITS) if one.samples else None for one in found]

    held = [_mean(one.sums.held[at], one.samples, scale) for one in found]
    if dimension == "gpu":
        used = [_mean(one.sums.used[at], one.sums.gpu_samples, scale) for one in found]
        used_most = [
            round(one.sums.used_most[at] / scale, DIGITS) if one.sums.gpu_samples else None for one in found
        ]
    else:
        used = [_mean(one.sums.used[at], one.samples, scale) for one in found]
        used_most = most(lambda sums: sums.used_most[at])
    return api.AmountsOverTime(
        dimension=dimension,
        held=held,
        held_most=most(lambda sums: sums.held_most[at]),
        used=used,
        used_most=used_most,
        limit=[None if one is None else round(one / scale, DIGITS) for one in _limits(at, found, limit)],
    )


def _limits(at: int, found: Sequence[StepSums], now: int | None) -> list[int | None]:
    """Return the limit of each step: that of the last sample that tells one, before the first one that of it."""
    told = [one.sums.limit[at] if one.sums.samples else "" for one in found]
    known = next((limit for limit in told if not isinstance(limit, str)), now)
    limits: list[int | None] = []
    for one, limit in zip(found, told, strict=True):
        if not isinstance(limit, str):
            known = limit
        limits.append(known if one.samples else None)
    return limits


def _mean(total: int, samples: int, scale: int) -> float | None:
    return round(total / samples / scale, DIGITS) if samples else None


def _seconds(sums: SpanSums, share: float) -> float | None:
    found = wait_quantile(sums.waits, share)
    return None if found is None else round(found, 1)

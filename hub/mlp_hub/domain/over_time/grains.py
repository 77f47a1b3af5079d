"""Lengths of spans in which samples are kept, and the questions that they can answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.over_time.sums import SpanSums, together
from mlp_language.message import msg


class SampleGrain(NamedTuple):
    """Spans of `seconds`, of which the last `kept` are kept."""

    seconds: int
    kept: int


GRAINS = (SampleGrain(30, 240), SampleGrain(300, 576), SampleGrain(3600, 840))
"""Tuning: samples of two hours, spans of 5 minutes of two days, and hours of five weeks: what a chart of a screen's width shows, for few rows."""
SPANS = {"hour": 3600, "day": 86_400, "week": 7 * 86_400, "month": 30 * 86_400}
"""Contract: lengths of questions in seconds, by name."""
STEPS = {"hour": 60, "day": 600, "week": 3600, "month": 3 * 3600}
"""Tuning: seconds of a step of an answer where none is asked for: finer curves, for more of them at once."""


class SumsOfSpan(NamedTuple):
    """Stored sums of a span that begins at `since`, in seconds since the epoch; those of the cluster have no tenant."""

    since: int
    tenant: str
    sums: SpanSums


class TimeSteps(NamedTuple):
    """Steps of an answer: `number` of them of `step` seconds each, from `since` on, of spans of `GRAINS[grain]`."""

    grain: int
    since: int
    step: int
    number: int


class StepSums(NamedTuple):
    """Sums of one step; `samples` counts the samples of the service, also those without a row of the tenant."""

    samples: int
    sums: SpanSums


def steps_of(span: str, step: int | None, now: float) -> TimeSteps:
    """Return the steps of a question. Raises `Invalid`."""
    length = SPANS[span]
    grain = next(i for i, one in enumerate(GRAINS) if one.seconds * one.kept >= length)
    unit = GRAINS[grain].seconds
    step = STEPS[span] if step is None else step
    if step % unit or not unit <= step <= length:
        raise Refused(
            Reason.INVALID,
            msg(
                "step {step} is not a multiple of {unit} from {unit} to {length}; a {span} is kept in spans of {unit} s",
                step=step,
                unit=unit,
                length=length,
                span=span,
            ),
        )
    number = length // step
    last = int(now // step)
    return TimeSteps(grain, (last - number + 1) * step, step, number)


def in_steps(steps: TimeSteps, stored: Sequence[SumsOfSpan], tenant: str) -> list[StepSums]:
    """Return the sums of each step, of a tenant or, without its name, of the cluster.

    A step without a sample of the service has none: nothing is known. A tenant that the service had nothing to tell of
    held nothing.
    """
    found: list[list[SpanSums]] = [[] for _ in range(steps.number)]
    samples = [0] * steps.number
    for one in sorted(stored):
        at = (one.since - steps.since) // steps.step
        if not 0 <= at < steps.number:
            continue
        if not one.tenant:
            samples[at] += one.sums.samples
        if one.tenant == tenant:
            found[at].append(one.sums)
    return [StepSums(n, together(sums)) for n, sums in zip(samples, found, strict=True)]

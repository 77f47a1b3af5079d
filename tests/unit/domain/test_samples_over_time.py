"""Sums of samples: thinning changes no mean and no count, gaps are not zeros, and questions are bounded."""

from __future__ import annotations

import math
import random

import pytest

from mlp_hub.domain.errors import Refused
from mlp_hub.domain.over_time.grains import GRAINS, SPANS, STEPS, SumsOfSpan, in_steps, steps_of
from mlp_hub.domain.over_time.sums import (
    MOST_BUCKET,
    SLOWER,
    SpanSums,
    latency_quantile,
    together,
    wait_bucket,
    wait_quantile,
)

NOW = 1_900_000_000.0


def sample(chance: random.Random) -> SpanSums:
    held = (chance.randrange(9000), chance.randrange(9000), chance.randrange(9000))
    return SpanSums(
        1, held, held, held, held, chance.randrange(2), (chance.randrange(9), None, 0), 3, 3, 1, 1,
        {"WaitingForQuota": chance.randrange(1, 5)}, {chance.randrange(40): 1}, (1, 0, chance.randrange(3)),
        chance.randrange(100), 1, {chance.choice([5, 10, SLOWER]): 2},
    )  # fmt: skip


def test_sums_of_sums_are_the_sums_of_all() -> None:
    chance = random.Random(1)
    samples = [sample(chance) for _ in range(120)]
    by_five = [together(samples[at : at + 10]) for at in range(0, 120, 10)]
    assert together(by_five) == together(samples)
    assert together(by_five).samples == 120
    assert together(samples).limit == samples[-1].limit
    assert together([]) == SpanSums()


def test_a_quantile_of_waits_is_within_a_tenth() -> None:
    chance = random.Random(2)
    waits = [chance.expovariate(1 / 600) for _ in range(2001)]
    counts: dict[int, int] = {}
    for wait in waits:
        counts[wait_bucket(wait)] = counts.get(wait_bucket(wait), 0) + 1
    for share in (0.5, 0.9, 0.99):
        exact = sorted(waits)[int(share * len(waits))]
        found = wait_quantile(counts, share)
        assert found is not None
        assert found == pytest.approx(exact, rel=0.11)


@pytest.mark.parametrize(
    ("seconds", "bucket"),
    [(0.0, 0), (-5.0, 0), (math.nan, 0), (0.1, 0), (0.11, 1), (math.inf, MOST_BUCKET), (1e300, MOST_BUCKET)],
)
def test_a_wait_that_makes_no_sense_has_a_bucket_too(seconds: float, bucket: int) -> None:
    assert wait_bucket(seconds) == bucket


def test_quantiles_of_answers_are_the_bounds_of_the_gateway() -> None:
    assert latency_quantile({}, 0.5) is None
    assert latency_quantile({5: 98, 100: 1, SLOWER: 1}, 0.5) == 5
    assert latency_quantile({5: 98, 100: 1, SLOWER: 1}, 0.99) == 100
    assert latency_quantile({5: 1, SLOWER: 99}, 0.99) == 5, "slower than the largest bound that is known"
    assert latency_quantile({SLOWER: 3}, 0.5) == 0
    assert wait_quantile({}, 0.9) is None
    assert wait_quantile({0: 5}, 0.9) == 0.0


def test_a_span_without_the_service_is_a_gap_and_an_idle_tenant_held_nothing() -> None:
    steps = steps_of("hour", None, NOW)
    cluster, red = SpanSums(2, (8000, 0, 0)), SpanSums(1, (4000, 0, 0))
    first = steps.since
    found = in_steps(
        steps,
        [
            SumsOfSpan(first, "", cluster), SumsOfSpan(first, "red", red),
            SumsOfSpan(first + 60, "", cluster), SumsOfSpan(first - 30, "", cluster),
            SumsOfSpan(first + steps.step * steps.number, "", cluster),
        ],
        "red",
    )  # fmt: skip
    assert len(found) == 60
    assert (found[0].samples, found[0].sums.held[0]) == (2, 4000), "the mean counts the sample without it"
    assert (found[1].samples, found[1].sums.held[0]) == (2, 0)
    assert {one.samples for one in found[2:]} == {0}


@pytest.mark.parametrize("span", SPANS)
def test_each_span_is_kept_as_long_as_it_is_shown(span: str) -> None:
    steps = steps_of(span, None, NOW)
    grain = GRAINS[steps.grain]
    assert steps.step == STEPS[span]
    assert steps.step % grain.seconds == 0
    assert steps.since <= NOW < steps.since + steps.number * steps.step
    assert steps.since > NOW - grain.seconds * grain.kept
    assert steps_of(span, grain.seconds, NOW).number <= 1000
    for coarse, fine in zip(GRAINS[1:], GRAINS, strict=False):
        assert coarse.seconds % fine.seconds == 0
        assert fine.seconds * fine.kept >= 2 * coarse.seconds, "its parts are there when a span is over"


@pytest.mark.parametrize(
    ("span", "step"),
    [("hour", 1), ("hour", 0), ("hour", -30), ("hour", 45), ("hour", 3630), ("day", 30), ("month", 300), ("week", 86_400 * 8)],
)  # fmt: skip
def test_a_step_that_is_not_kept_is_refused_in_words(span: str, step: int) -> None:
    with pytest.raises(Refused, match=f"step {step} is not a multiple of"):
        steps_of(span, step, NOW)

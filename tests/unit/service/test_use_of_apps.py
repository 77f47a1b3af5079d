"""Counts of what was asked of apps are added up, whoever counted, and count once."""

from __future__ import annotations

from dataclasses import replace

from mlp_hub.domain.apps.app_usage import AppUse, MinuteOfUse, merged_report, together

BOUNDS = (5, 10)
ONE = AppUse(100.0, 3, 1, 30, 60, 160.0, BOUNDS, (1, 1, 1), (MinuteOfUse(2, 3, 1, 30, 60),))
TWO = AppUse(
    200.0, 2, 0, 20, 40, 220.0, BOUNDS, (2, 0, 0), (MinuteOfUse(2, 1, 0, 9, 9), MinuteOfUse(3, 1, 0, 11, 31))
)


def test_counts_of_two_processes_are_added_up() -> None:
    both = merged_report(merged_report(None, "a", ONE), "b", TWO)
    assert both.total == AppUse(
        100.0,
        5,
        1,
        50,
        100,
        220.0,
        BOUNDS,
        (3, 1, 1),
        (MinuteOfUse(2, 4, 1, 39, 69), MinuteOfUse(3, 1, 0, 11, 31)),
    )
    assert both.without("b") == ONE
    assert both.without("c") == both.total
    assert merged_report(None, "a", ONE).without("a") is None


def test_counts_reported_again_or_late_count_once() -> None:
    stored = merged_report(None, "a", ONE)
    more = replace(
        ONE, requests=9, last=170.0, minutes=(MinuteOfUse(2, 5, 1, 1, 1), MinuteOfUse(3, 4, 0, 1, 1))
    )
    newer = merged_report(stored, "a", more)
    assert newer.total == more
    assert merged_report(newer, "a", ONE) == newer
    assert merged_report(newer, "a", more) == newer
    # only the minutes that changed are told
    last = merged_report(newer, "a", replace(more, requests=10, minutes=(MinuteOfUse(3, 5, 0, 2, 2),)))
    assert last.total.minutes == (MinuteOfUse(2, 5, 1, 1, 1), MinuteOfUse(3, 5, 0, 2, 2))


def test_histograms_with_other_bounds_are_not_mixed_and_an_hour_is_kept() -> None:
    other = replace(TWO, bounds_ms=(7,), latency=(1, 1))
    assert (together(ONE, other).bounds_ms, together(ONE, other).latency) == ((7,), (1, 1))
    long = replace(ONE, minutes=tuple(MinuteOfUse(n, 1, 0, 0, 0) for n in range(60)))
    assert [
        one.minute for one in together(long, replace(TWO, minutes=(MinuteOfUse(60, 1, 0, 0, 0),))).minutes
    ] == list(range(1, 61))


def test_a_share_of_answers_is_told_by_the_bound_that_it_kept() -> None:
    assert (ONE.within_ms(0.3), ONE.within_ms(0.6), ONE.within_ms(0.99)) == (5, 10, None)
    assert AppUse(0.0).within_ms(0.5) is None

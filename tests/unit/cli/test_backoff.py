"""How long the supervisor waits before it starts something again."""

from __future__ import annotations

from mlp_hub.cli.supervisor.backoff import FIRST, LONGEST, STABLE, Backoff


def waits(lives: list[float]) -> list[float]:
    """Return the waits after lives of these lengths."""
    backoff = Backoff()
    return [round(backoff.died(100.0, 100.0 + life) - (100.0 + life), 6) for life in lives]


def test_the_first_death_costs_almost_nothing_and_each_further_one_twice_as_much() -> None:
    assert waits([1, 1, 1, 1]) == [FIRST, FIRST * 2, FIRST * 4, FIRST * 8]


def test_the_wait_never_exceeds_its_limit() -> None:
    assert waits([0.1] * 20)[-1] == LONGEST


def test_a_stable_life_forgets_the_deaths_before_it() -> None:
    assert waits([1, 1, 1, STABLE, 1]) == [FIRST, FIRST * 2, FIRST * 4, FIRST, FIRST * 2]

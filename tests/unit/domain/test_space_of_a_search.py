"""What may be searched, how it is written, and what is refused with which words."""

from __future__ import annotations

import math

import pytest

from mlp_hub.domain.errors import Refused
from mlp_hub.domain.jobs.space import (
    Choice,
    Range,
    check_grid,
    parse_array,
    parse_space,
    point_of,
    shuffled,
    size_of,
)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("uniform(0, 0.5)", Range(0, 0.5)),
        (" loguniform( 1e-5 ,1) ", Range(1e-5, 1, log=True)),
        ("int(1,8)", Range(1, 8, whole=True)),
        ("logint(1, 1024)", Range(1, 1024, whole=True, log=True)),
        ("choice(adam, 2, 0.5, true)", ("adam", 2, 0.5, True)),
    ],
)
def test_a_space_is_read(written: str, meant: Range | Choice) -> None:
    assert parse_space({"x": written}) == (("x", meant),)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("", "is not a space; write one of uniform"),
        ("0.1,0.2", "is not a space"),
        ("normal(0, 1)", "is not a space"),
        ("uniform(1)", "needs a minimum and a maximum"),
        ("uniform(0, inf)", "needs two finite numbers"),
        ("uniform(nan, 1)", "needs two finite numbers"),
        ("uniform(a, b)", "needs two finite numbers"),
        ("uniform(1, 0)", "is empty: 1 is not below 0"),
        ("uniform(1, 1)", "is empty"),
        ("int(0.5, 2)", "needs whole numbers; write uniform"),
        ("loguniform(0, 1)", "begins at 0, and logarithms"),
        ("uniform(-1e308, 1e308)", "is too wide or too narrow"),
        ("loguniform(1e-320, 1e-310)", "is too wide or too narrow"),
        ("uniform(0, 5e-324)", "is too wide or too narrow"),
        ("choice()", "choice is empty"),
        ("choice(a,,b)", "choice is empty"),
        ("choice(a, a)", "a value appears twice"),
    ],
)
def test_an_invalid_search_space_is_refused_with_a_valid_form(written: str, said: str) -> None:
    with pytest.raises(Refused, match="parameter x: ") as refused:
        parse_space({"x": written})
    assert said in str(refused.value)


def test_a_grid_has_each_point_once_and_its_last_parameter_varies_fastest() -> None:
    grid = check_grid({"lr": [0.1, 0.01], "act": ["relu", "tanh", "gelu"]})
    points = [point_of(grid, n) for n in range(size_of(grid))]
    assert points[:2] == [{"lr": 0.1, "act": "relu"}, {"lr": 0.1, "act": "tanh"}]
    assert len({tuple(p.items()) for p in points}) == 6
    assert point_of(grid, 6) == points[0]


def test_a_grid_that_is_shuffled_has_each_point_once_in_an_order_of_its_seed() -> None:
    order = shuffled(12, 0)
    assert sorted(order) == list(range(12))
    assert order != tuple(range(12))
    assert order == shuffled(12, 0) != shuffled(12, 1)
    assert shuffled(6, 7) == (
        5,
        4,
        0,
        2,
        1,
        3,
    )  # of every version of Python: trials are made of it across upgrades
    assert len(set(shuffled(10**12, 0))) == 1000  # as many as are ever tried of one


@pytest.mark.parametrize("wrong", [[], [1, 1], [math.inf], list(range(1001))])
def test_a_grid_with_nothing_to_try_or_too_much_is_refused(wrong: list[float]) -> None:
    with pytest.raises(Refused, match="parameter lr: "):
        check_grid({"lr": wrong})


@pytest.mark.parametrize(
    ("written", "indices", "most"),
    [
        ("0-3", (0, 1, 2, 3), None),
        ("0-31%8", tuple(range(32)), 8),
        ("1,5-7,10-20:5", (1, 5, 6, 7, 10, 15, 20), None),
    ],
)
def test_an_array_is_read_as_slurm_writes_it(
    written: str, indices: tuple[int, ...], most: int | None
) -> None:
    assert parse_array(written) == (indices, most)


@pytest.mark.parametrize("wrong", ["", "a", "3-1", "0-3%0", "0-3%", "1,1", "0-1000", "0-9:0", "-3", "0-31%x"])
def test_an_array_that_cannot_be_meant_is_refused(wrong: str) -> None:
    with pytest.raises(Refused, match="array"):
        parse_array(wrong)


def test_attacks_what_takes_long_to_choose_from_is_refused() -> None:
    many = f"choice({', '.join(map(str, range(500)))})"
    assert len(parse_space({"a": many, "b": many})) == 2
    with pytest.raises(
        Refused, match="chooses from 1001 values, and the limit of all its parameters together is 1000"
    ):
        parse_space({"a": many, "b": f"{many[:-1]}, x)"})

"""What a job's name becomes where fewer characters are allowed: never what another one becomes."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlp_api.jobs.jobs import JOB_NAME_PATTERN, JOB_PATTERN
from mlp_hub.domain.jobs.names import directory_name, label_name, parse_reference, reference, title

NAME, JOB = re.compile(JOB_NAME_PATTERN), re.compile(JOB_PATTERN)
LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
names = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,49}", fullmatch=True)
runs = st.integers(1, 999_999_999)


def test_names_are_what_people_write() -> None:
    for good in ("digits", "lr-0.001", "Big_run", "_x", "7", "1e-4", "A" * 50, "a.", "a-"):
        assert NAME.fullmatch(good), good
    for bad in (
        "",
        ".",
        "..",
        ".hidden",
        "-x",
        "--name",
        "a b",
        "a/b",
        "a@1",
        "a:b",
        "ü",
        "a\n",
        "a" * 51,
        "*",
    ):
        assert not NAME.fullmatch(bad), bad


def test_a_reference_is_a_name_or_a_certain_run_of_it() -> None:
    assert [parse_reference(t) for t in ("digits", "digits@1", "lr-0.001@12")] == [
        ("digits", None),
        ("digits", 1),
        ("lr-0.001", 12),
    ]
    for bad in (
        "digits@",
        "digits@0",
        "digits@02",
        "digits@x",
        "digits@-1",
        "digits@٢",
        "a@1@2",
        f"a@{10**9}",
    ):
        assert parse_reference(bad) is None, bad
        assert not JOB.fullmatch(bad), bad
    assert JOB.fullmatch("Big_run@3")
    assert (reference("digits", 1), title("digits", 1), title("digits", 2)) == (
        "digits@1",
        "digits",
        "digits@2",
    )


def test_converted_names_stay_readable() -> None:
    assert (directory_name("digits", 1), directory_name("digits", 2)) == ("digits", "digits@2")
    assert (directory_name("lr-0.001", 1), directory_name("Big_run", 3)) == ("lr-0.001", "_big__run@3")
    assert label_name("digits", 1) == "digits"
    assert label_name("Big_run", 3).startswith("0-big-run-3-")
    assert label_name("_", 1).startswith("0-1-")


@given(names, runs)
def test_converted_names_are_valid_at_their_destination(name: str, run: int) -> None:
    label, directory = label_name(name, run), directory_name(name, run)
    assert LABEL.fullmatch(label)
    assert directory == directory.lower()
    assert len(directory) <= 255
    assert directory not in {".", ".."}
    assert not directory.startswith((".", "-"))
    assert "/" not in directory


@pytest.mark.parametrize("safe", [directory_name, label_name])
def test_no_two_short_names_become_the_same_one_on_a_target_without_capitals(safe) -> None:
    alphabet = "aAbB1_.-"
    short = ["".join(c) for n in (1, 2, 3, 4) for c in itertools.product(alphabet, repeat=n)]
    taken = [(n, r) for n in short if NAME.fullmatch(n) for r in (1, 2, 11)]
    assert len({safe(n, r).casefold() for n, r in taken}) == len(taken)


@given(names, names, runs, runs)
def test_no_two_names_become_the_same_one(one: str, other: str, first: int, second: int) -> None:
    if (one, first) != (other, second):
        assert directory_name(one, first).casefold() != directory_name(other, second).casefold()
        assert label_name(one, first) != label_name(other, second)
    for swapped in {one.swapcase(), one.replace("_", "-"), one.replace(".", "_")} - {one}:
        assert directory_name(one, first).casefold() != directory_name(swapped, first).casefold()
        assert label_name(one, first) != label_name(swapped, first)


def test_nobody_can_take_the_label_of_a_later_run_by_a_name() -> None:
    later = label_name("digits", 2)
    assert label_name(later, 1) != later
    assert directory_name("digits-2", 1) != directory_name("digits", 2)

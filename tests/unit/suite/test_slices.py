"""Every test file is run by one slice, and the slow ones are dealt out evenly."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import SLOWEST
from support.slices import Slice

FILES = list(Path("tests/integration").rglob("test_*.py"))


def test_each_file_is_of_one_slice() -> None:
    slices = [Slice(number, 4) for number in range(1, 5)]
    assert all(sum(each.has(path, SLOWEST) for each in slices) == 1 for path in FILES)


def test_the_slowest_are_dealt_out_evenly() -> None:
    taken = [
        [stem for stem in SLOWEST if Slice(number, 4).has(Path(stem), SLOWEST)] for number in range(1, 5)
    ]
    assert max(map(len, taken)) - min(map(len, taken)) <= 1
    assert {each[0] for each in taken} == set(SLOWEST[:4])


@pytest.mark.parametrize("text", ["", "1", "0/4", "5/4", "a/b", "1/2/3"])
def test_an_invalid_slice_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"number|values|literal"):
        Slice.parse(text)

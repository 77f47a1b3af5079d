"""The share of texts with a mark of translated English is counted, and its ceilings only fall."""

from __future__ import annotations

import pytest

from english import above, marks_of, share


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("The name is no runtime.", ["is no"]),
        ("The name is not a runtime.", []),
        ("It is no longer there.", []),
        ("What waits is shown. The rest is not.", ["clause as subject"]),
        ("Jobs that wait are shown.", []),
        ("What is a team?", []),
        ("Return the seconds of who waits.", ["clause as object"]),
        ("so many jobs", ["so many"]),
        ("so many that nobody counts them", []),
        ("The job goes on in a directory of its own.", ["goes on", "of its own"]),
    ],
)
def test_marks_are_found(text: str, marks: list[str]) -> None:
    assert marks_of(text) == marks


def test_each_text_is_counted_once() -> None:
    count, marked, by_mark = share(["What goes on is shown.", "A job.", ""])
    assert (count, marked) == (2, 1)
    assert by_mark == {"clause as subject": 1, "goes on": 1}


@pytest.mark.parametrize(
    ("found", "wrong"), [(5.0, ""), (4.6, ""), (5.1, "reword what you wrote"), (4.4, "lower the ceiling")]
)
def test_a_share_may_not_rise_and_takes_its_ceiling_down(found: float, wrong: str) -> None:
    said = above({"docs": found}, {"docs": 5.0})
    assert bool(said) == bool(wrong)
    assert wrong in "".join(said)

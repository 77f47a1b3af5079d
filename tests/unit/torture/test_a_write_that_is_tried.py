"""A write is tried until it is taken, and a late answer is one too."""

from __future__ import annotations

import itertools
import threading

import pytest

from support.failover.persistent_write import PersistentWrite


def test_an_answer_that_comes_while_the_next_attempts_are_made_counts() -> None:
    numbers, later = itertools.count(1), threading.Event()

    def send() -> bool:
        number = next(numbers)
        if number == 1:
            return later.wait()
        if number == 3:
            later.set()
        return False

    tries = PersistentWrite(send, try_s=0.01)
    took = tries.until_taken()
    tries.join()
    assert [each.taken for each in tries.attempts][:3] == [True, False, False]
    assert took == tries.attempts[0].ended


def test_a_write_that_is_refused_is_tried_again_until_it_is_taken() -> None:
    answers = iter([False, False, True])
    tries = PersistentWrite(lambda: next(answers))
    assert tries.until_taken() == tries.attempts[2].ended
    assert len(tries.attempts) == 3


def test_a_write_that_nobody_takes_ends_and_what_there_is_to_see_was_kept_once() -> None:
    kept: list[int] = []
    tries = PersistentWrite(lambda: False, late=lambda: kept.append(1), late_s=0.0, patience_s=0.2)
    assert tries.until_taken() is None
    tries.join()
    assert kept == [1]
    assert not any(each.taken for each in tries.attempts)


def test_an_unexpected_answer_is_raised_in_the_waiter() -> None:
    def send() -> bool:
        raise AssertionError("404")

    with pytest.raises(AssertionError, match="404"):
        PersistentWrite(send).until_taken()

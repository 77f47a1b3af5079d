"""Jobs that wait for an exporter: turns, and the number of points that are behind."""

from __future__ import annotations

import random

import pytest

from mlp_hub.service.exports import backlog
from mlp_hub.service.exports.backlog import ExportBacklog


def test_jobs_have_turns_and_points_that_are_behind_are_counted() -> None:
    found = ExportBacklog()
    found.add("a", 0, 10)
    found.add("b", 5, 7)
    found.add("a", 10, 12)
    assert (found.points, found.turn(0.0, 1)) == (14, ["a"])
    assert found.advance("a", 4) == 8
    found.rotate("a")
    assert (found.points, found.turn(0.0, 5)) == (10, ["b", "a"])
    found.put_aside("b", 3.0)
    assert (found.turn(2.9, 5), found.turn(3.0, 5)) == (["a"], ["b", "a"])
    assert found.advance("b", 7) == 0
    assert (found.remove("b"), found.remove("a"), found.remove("c")) == (0, 8, 0)
    assert (found.points, len(found)) == (0, 0)


def test_an_end_during_a_turn_gives_the_job_another_one() -> None:
    found = ExportBacklog()
    found.add("a", 0, 3)
    found.turn(0.0, 1)
    found.mark("a")
    assert (found.advance("a", 3), found.has_news("a")) == (0, True)
    found.turn(0.0, 1)
    assert not found.has_news("a")


def test_points_that_come_during_a_turn_give_the_job_another_one() -> None:
    found = ExportBacklog()
    found.mark("a")
    found.turn(0.0, 1)
    found.add("a", 3, 4)
    assert found.has_news("a")
    found.turn(0.0, 1)
    found.add("a", 3, 4)
    assert not found.has_news("a"), "they are known"


def test_an_end_counts_no_points_and_those_that_come_late_count_once() -> None:
    found = ExportBacklog()
    found.mark("a")
    assert (found.points, found.turn(0.0, 1)) == (0, ["a"])
    found.add("a", 100, 104)
    assert found.points == 4
    found.add("a", 90, 104)  # the database says that more waits
    assert found.points == 14


def test_no_more_jobs_than_the_bound_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog, "MOST_JOBS", 2)
    found = ExportBacklog()
    assert [found.add(uid, 0, 1) for uid in "abc"] == [True, True, False]
    assert found.add("a", 1, 2)
    assert not found.mark("d")
    assert (found.overflowed, found.points) == (True, 3)


def test_the_sum_is_what_is_behind_whatever_happens() -> None:
    rng = random.Random(3)
    for _ in range(200):
        found, newest, done = ExportBacklog(), dict.fromkeys("abc", 0), dict.fromkeys("abc", 0)
        for _ in range(50):
            uid = rng.choice("abc")
            act = rng.randrange(4)
            if act == 0:
                first = newest[uid]
                newest[uid] += rng.randrange(1, 5)
                found.add(uid, first if uid in found else done[uid], newest[uid])
            elif act == 1 and uid in found:
                done[uid] = rng.randint(done[uid], newest[uid])
                if not found.advance(uid, done[uid]):
                    found.remove(uid)
            elif act == 2:
                found.mark(uid)
            else:
                found.rotate(uid)
            behind = sum(newest[u] - done[u] for u in "abc")
            assert found.points == behind

"""Work that many share is done for all but those who spoil it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from mlp_hub.domain.errors import Unavailable
from mlp_hub.service.admission.backoff import JobBackoff
from mlp_hub.service.state.leadership import LeaseLost
from mlp_hub.service.support.batching import MOST_BAD, Batch, PartOutcome, in_parts
from mlp_hub.store.errors import StatementFailed


class Work:
    """Does all of its part, or nothing where a bad one is among it."""

    def __init__(self, bad: set[int], error: type[Exception] = StatementFailed) -> None:
        self.bad = bad
        self.error = error
        self.done: list[int] = []
        self.calls = 0

    async def __call__(self, part: Sequence[int]) -> list[int | Exception]:
        self.calls += 1
        if self.bad & set(part):
            raise self.error(f"{sorted(self.bad & set(part))} cannot be stored")
        self.done += part
        return [10 * n for n in part]


@given(st.integers(1, 200), st.sets(st.integers(0, 199), max_size=MOST_BAD - 1))
def test_all_but_the_bad_ones_are_done_once_and_in_order(count: int, bad: set[int]) -> None:
    bad &= set(range(count))
    work = Work(bad)
    outcomes = asyncio.run(in_parts(range(count), work))
    assert [n for o in outcomes for n in o.items] == list(range(count))
    assert work.done == [n for n in range(count) if n not in bad]
    assert {n for o in outcomes if o.error is not None for n in o.items} == bad
    assert [v for o in outcomes for v in o.result or ()] == [10 * n for n in work.done]


def test_work_without_failures_is_done_in_one_call() -> None:
    work = Work(set())
    asyncio.run(in_parts(range(100), work))
    assert work.calls == 1


def test_an_error_that_is_everybodys_is_not_looked_for() -> None:
    for error in (Unavailable, lambda _: LeaseLost()):
        work = Work({3}, error)  # type: ignore[arg-type]
        outcomes = asyncio.run(in_parts(range(8), work))
        assert work.calls == 1
        assert [o.items for o in outcomes] == [range(8)]
        assert isinstance(outcomes[0].error, Unavailable)


def test_where_the_database_goes_away_meanwhile_the_rest_is_told_so() -> None:
    done: list[int] = []

    async def work(part: Sequence[int]) -> list[int]:
        if len(part) > 2:
            raise ValueError("too many for this test")
        if 4 in part:
            raise Unavailable("gone")
        done.extend(part)
        return list(part)

    outcomes = asyncio.run(in_parts(range(8), work))
    assert done == [0, 1, 2, 3]
    assert [list(o.items) for o in outcomes if o.error is None] == [[0, 1], [2, 3]]
    assert [list(o.items) for o in outcomes if isinstance(o.error, Unavailable)] == [[4, 5], [6, 7]]


def test_where_nearly_all_fail_the_rest_is_not_tried() -> None:
    work = Work(set(range(512)))
    outcomes: list[PartOutcome[int, list[int | Exception]]] = asyncio.run(in_parts(range(512), work))
    assert work.calls < 3 * MOST_BAD
    assert sum(len(o.items) for o in outcomes if o.error is not None) == 512


def test_in_a_lot_everybody_but_the_bad_one_gets_an_answer() -> None:
    async def go() -> list[int | BaseException]:
        batch: Batch[int, int] = Batch(Work({5}, ValueError))
        return await asyncio.gather(*(batch.submit_item(n) for n in range(12)), return_exceptions=True)

    answers = asyncio.run(go())
    assert isinstance(answers[5], ValueError)
    assert [a for n, a in enumerate(answers) if n != 5] == [10 * n for n in range(12) if n != 5]


def test_a_job_is_left_alone_for_longer_each_time_and_no_longer_than_that() -> None:
    backoff = JobBackoff(0.5, 3.0)
    waits = []
    now = 100.0
    for _ in range(5):
        waits.append(backoff.delay_job("a", now))
        assert "a" in backoff
        assert backoff.next() == now + waits[-1]
        assert backoff.ripe(now + waits[-1] - 0.01) == []
        now += waits[-1]
        assert backoff.ripe(now) == ["a"]
        assert "a" not in backoff
        assert backoff.next() is None
    assert waits == [0.5, 1.0, 2.0, 3.0, 3.0]
    backoff.forget("a")
    assert backoff.delay_job("a", now) == 0.5
    backoff.forget("a")
    assert backoff.next() is None
    assert "a" not in backoff

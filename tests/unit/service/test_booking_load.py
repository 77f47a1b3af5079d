"""The most that is booked at once, against sums made one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlp_hub.service.bookings.load import Load

spans = st.tuples(st.integers(0, 30), st.integers(1, 20), st.integers(0, 9)).map(
    lambda s: (s[0], s[0] + s[1], s[2])
)


@given(st.lists(spans, max_size=30), spans)
def test_the_most_is_that_of_the_sums(added: list[tuple[int, int, int]], asked: tuple[int, int, int]) -> None:
    start, end, _ = asked
    moments = sorted({s for s, _, _ in added} | {start})
    load = Load(moments)
    assert load.most(start, end) == 0
    for i, (s, e, n) in enumerate(added):
        load.add(s, e, n)
        for low in moments:
            sums = [sum(n for s, e, n in added[: i + 1] if s <= m < e) for m in moments if low <= m < end]
            if sums:
                assert load.most(low, end) == max(sums)


@pytest.mark.parametrize("count", [1, 2, 3, 1000])
def test_spans_side_by_side_do_not_add_up(count: int) -> None:
    load = Load(range(count))
    for i in range(count):
        load.add(i, i + 1, 5)
    assert load.most(0, count) == 5
    load.add(count - 1, count + 7, 1)
    assert load.most(0, count) == 6

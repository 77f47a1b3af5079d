from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mlp_hub.domain.resources import ZERO, Quota, Resources, milli, units

kinds = st.dictionaries(st.sampled_from(["a100", "h100"]), st.integers(1, 10**6)).map(
    lambda d: tuple(sorted(d.items()))
)
numbers = st.integers(0, 10**12)
amounts = st.builds(Resources, numbers, numbers, numbers, numbers, kinds)


@given(amounts, amounts, amounts)
def test_sums_do_not_depend_on_order_and_what_is_added_can_be_taken_off(a, b, c) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert (a + b) - b == a
    assert a + ZERO == a


@given(amounts, st.integers(1, 100))
def test_a_multiple_is_that_many_added_up(a, n) -> None:
    total = ZERO
    for _ in range(n):
        total += a
    assert a * n == total


@given(amounts, amounts)
def test_what_fits_is_within_the_quota_of_the_same_size(a, room) -> None:
    quota = Quota(
        room.cpu, room.gpu, room.ram, room.rom, {**dict.fromkeys(["a100", "h100"], 0), **dict(room.kinds)}
    )
    assert a.fits(room) == (quota.exceeded_by(a) == [])


def test_an_empty_quota_limits_nothing_and_a_kind_is_limited_by_its_name() -> None:
    big = Resources(10**9, 10**9, 10**9, 10**18, (("a100", 10**9),))
    assert Quota().exceeded_by(big) == []
    assert Quota(cpu=1, kinds={"a100": 5}).exceeded_by(big) == [("cpu", 10**9, 1), ("gpu:a100", 10**9, 5)]


@given(st.integers(0, 10**9))
def test_thousandths_survive_the_wire(n) -> None:
    assert milli(units(n)) == n

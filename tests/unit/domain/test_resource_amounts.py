from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mlp_hub.domain.resources import ZERO, Resources, milli, units

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
def test_an_amount_fits_only_if_no_part_exceeds_the_available_room(a, room) -> None:
    have = dict(room.kinds)
    plain = all(value <= most for (_, value), (_, most) in zip(a.items(), room.items(), strict=True))
    assert a.fits(room) == (plain and all(value <= have.get(kind, 0) for kind, value in a.kinds))


@given(st.integers(0, 10**9))
def test_thousandths_survive_the_wire(n) -> None:
    assert milli(units(n)) == n

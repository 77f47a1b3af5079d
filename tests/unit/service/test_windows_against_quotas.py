"""What of booked windows can be held never adds up to more than there is, and whoever fits is whole."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.domain.workload.booking import BookedWindow, Shortfall
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.service.bookings.feasibility import Supply, checked
from mlp_language.message import msg

TENANTS = ("blue", "red")
amounts = st.integers(0, 12).map(lambda n: n * 1000)
quotas = st.none() | amounts
windows = st.lists(
    st.tuples(st.sampled_from(TENANTS), st.integers(0, 8), st.integers(1, 5), amounts, st.integers(0, 3)),
    max_size=6,
)


def supply(quota: dict[str, int | None], reserved: dict[str, int], cpu: int) -> Supply:
    size = Resources(cpu=cpu)
    tenants = [Tenant(n, Quota(cpu=quota[n]), reserved=Quota(cpu=reserved[n])) for n in TENANTS]
    return Supply.from_tenants(tenants, [NodeInfo("n", size, size)])


@given(
    found=windows,
    quota=st.fixed_dictionaries(dict.fromkeys(TENANTS, quotas)),
    reserved=st.fixed_dictionaries(dict.fromkeys(TENANTS, st.integers(0, 2).map(lambda n: n * 1000))),
    cpu=amounts,
)
def test_held_windows_fit_at_every_moment_and_no_window_is_short_needlessly(
    found, quota, reserved, cpu
) -> None:
    made = [
        BookedWindow(t, f"w{i}", float(start), float(start + length), Quota(cpu=n), made_at=float(at))
        for i, (t, start, length, n, at) in enumerate(found)
    ]
    seen = checked(made, supply(quota, reserved, cpu), now=-1.0)
    assert {w.name for w in seen.values()} == {w.name for w in made}
    for moment in range(15):
        open_ = [w for w in seen.values() if w.start <= moment < w.end]
        held = sum(w.in_force.cpu or 0 for w in open_)
        assert not held or held + sum(reserved.values()) <= cpu
        for name in TENANTS:
            mine = sum(w.in_force.cpu or 0 for w in open_ if w.tenant == name)
            own = quota[name]
            assert not mine or own is None or mine + reserved[name] <= own
    for window in seen.values():
        if window.short is not None:
            assert (window.short.left.cpu or 0) < (window.amount.cpu or 0)
    again = checked(list(seen.values()), supply(quota, reserved, cpu), now=5.0)
    assert {k: w.in_force for k, w in again.items()} == {k: w.in_force for k, w in seen.items()}
    plenty = checked(list(seen.values()), supply(dict.fromkeys(TENANTS), reserved, 10**6), now=-1.0)
    assert all(w.short is None for w in plenty.values())


def test_a_window_that_stays_short_keeps_since_when() -> None:
    was = Shortfall(3.0, Quota(cpu=1000), msg("needs more"))
    window = BookedWindow("blue", "w", 10.0, 20.0, Quota(cpu=4000), short=was)
    seen = checked([window], supply({"blue": 2000, "red": None}, {"blue": 0, "red": 0}, 9000), now=5.0)
    short = seen["blue", "w"].short
    assert short is not None
    assert (short.since, short.left) == (3.0, Quota(cpu=2000))
    assert str(short.message) == "needs 4 cpu, but 2 is left: the quota of blue is 2 cpu"


def test_a_window_is_held_against_the_quotas_above_its_tenant_with_all_that_is_kept_below_them() -> None:
    size = Resources(cpu=90_000)
    tenants = [
        Tenant("top", Quota(cpu=8000)),
        Tenant("kid", Quota(), parent="top"),
        Tenant("grandkid", Quota(), parent="kid"),
        Tenant("sister", Quota(), parent="top", reserved=Quota(cpu=2000)),
        Tenant("other", Quota()),
    ]
    supply = Supply.from_tenants(tenants, [NodeInfo("n", size, size)])
    first = BookedWindow("grandkid", "a", 10.0, 20.0, Quota(cpu=5000), made_at=1.0)
    second = BookedWindow("kid", "b", 15.0, 30.0, Quota(cpu=4000), made_at=2.0)
    elsewhere = BookedWindow("other", "c", 0.0, 99.0, Quota(cpu=60_000), made_at=3.0)
    seen = checked([first, second, elsewhere], supply, now=5.0)
    assert seen["grandkid", "a"].short is None
    assert seen["other", "c"].short is None
    short = seen["kid", "b"].short
    assert short is not None
    assert short.left == Quota(cpu=1000)
    assert str(short.message) == (
        "needs 4 cpu, but 1 is left: the quota of top is 8 cpu, of which 7 is already reserved or booked"
    )

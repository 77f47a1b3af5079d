"""How many replicas an app has follows what is asked of it, up at once and down slowly."""

from __future__ import annotations

import pytest

from mlp_hub.service.apps.scaling import AppLoad, Scaling, replicas_for

SCALE = Scaling(least=1, most=5, concurrency=4, idle_s=60.0)
SLEEPS = Scaling(least=0, most=5, concurrency=4, idle_s=60.0)
LONG = 1000.0


def loads(*pairs: tuple[float, float]) -> list[AppLoad]:
    return [AppLoad(age, number) for age, number in pairs]


@pytest.mark.parametrize(
    ("wanted", "under_way", "becomes"),
    [
        (1, 0.0, 1),
        (1, 4.0, 1),
        (1, 4.3, 1),  # a little more than one is for
        (1, 4.5, 2),
        (1, 11.0, 3),
        (1, 900.0, 5),
        (3, 11.0, 3),
        (5, 900.0, 5),
    ],
)
def test_an_app_grows_to_the_requests_in_progress(wanted: int, under_way: float, becomes: int) -> None:
    found, _ = replicas_for(wanted, SCALE, loads((0.0, under_way)), known_s=LONG, quiet_s=0.0)
    assert found == becomes


def test_one_moment_among_quiet_ones_starts_nothing() -> None:
    found, _ = replicas_for(1, SCALE, loads((10.0, 1.0), (5.0, 1.0), (0.0, 9.0)), known_s=LONG, quiet_s=0.0)
    assert found == 1


def test_an_app_shrinks_only_to_the_need_of_the_busiest_moment_of_its_idle_time() -> None:
    seen = loads((50.0, 11.0), (20.0, 3.0), (0.0, 0.0))
    assert replicas_for(4, SCALE, seen, known_s=LONG, quiet_s=5.0) == (3, 55.0)
    # and is looked at again when that moment is over
    assert replicas_for(3, SCALE, seen, known_s=LONG, quiet_s=5.0) == (3, 10.0)
    assert replicas_for(3, SCALE, loads((61.0, 11.0), (20.0, 3.0)), known_s=LONG, quiet_s=5.0)[0] == 1


def test_an_app_does_not_shrink_when_observation_has_just_begun() -> None:
    assert replicas_for(4, SCALE, [], known_s=10.0, quiet_s=10.0) == (4, 50.0)
    assert replicas_for(4, SCALE, loads((0.0, 1.0)), known_s=10.0, quiet_s=0.0)[0] == 4
    assert replicas_for(1, SCALE, loads((0.0, 40.0)), known_s=0.0, quiet_s=0.0)[0] == 5  # growing is harmless


def test_nobody_asks_and_as_few_are_left_as_there_may_be() -> None:
    assert replicas_for(4, SCALE, [], known_s=LONG, quiet_s=60.0) == (1, None)
    assert replicas_for(4, SLEEPS, [], known_s=LONG, quiet_s=60.0) == (0, None)
    assert replicas_for(1, SLEEPS, [], known_s=LONG, quiet_s=59.0) == (1, 1.0)
    assert replicas_for(1, SLEEPS, loads((3.0, 0.0)), known_s=LONG, quiet_s=59.0)[0] == 1


def test_a_load_that_comes_and_goes_starts_and_ends_nothing_all_the_time() -> None:
    wanted, changes, told = 1, 0, list[tuple[float, float]]()
    for step in range(400):
        now = step * 5.0
        told.append((now, 8.0 if step % 6 < 3 else 0.0))
        seen = [AppLoad(now - at, number) for at, number in told if now - at <= SCALE.idle_s]
        found, _ = replicas_for(wanted, SCALE, seen, known_s=now, quiet_s=0.0)
        changes += found != wanted
        wanted = found
    assert (wanted, changes) == (2, 1)


@pytest.mark.parametrize("wanted", range(6))
@pytest.mark.parametrize("number", [0.0, 1.0, 7.9, 20.0, 1e9])
def test_it_never_leaves_its_range(wanted: int, number: float) -> None:
    for scale in (SCALE, SLEEPS):
        for quiet in (0.0, 59.0, 60.0):
            found, again = replicas_for(wanted, scale, loads((1.0, number)), known_s=LONG, quiet_s=quiet)
            assert scale.least <= max(found, scale.least) <= scale.most
            assert again is None or again > 0

"""A wall clock that is set is noticed, and told once; one that is set right bit by bit is not."""

from __future__ import annotations

import pytest

from mlp_hub.hub_integration.culler import Patient
from mlp_hub.service.support.wall_clock import WallClockWatch


class Clocks:
    def __init__(self) -> None:
        self.wall, self.steady = 1_000_000.0, 5.0

    def on(self, seconds: float, jump: float = 0.0) -> None:
        self.wall += seconds + jump
        self.steady += seconds


async def test_a_jump_is_told_once_and_again_where_nobody_could_be_told() -> None:
    clocks, told, refuses = Clocks(), list[float](), [True]

    async def moved(by: float) -> None:
        if refuses.pop() if refuses else False:
            raise OSError("the database is away")
        told.append(by)

    watch = WallClockWatch(lambda: clocks.wall, moved, lambda: clocks.steady)
    clocks.on(1.0, jump=3600.0)
    with pytest.raises(OSError, match="away"):
        await watch.check_clock()
    assert told == []
    await watch.check_clock()
    await watch.check_clock()
    assert told == [3600.0]
    for _ in range(100):  # set right bit by bit
        clocks.on(1.0, jump=0.2)
        await watch.check_clock()
    assert told == [3600.0]
    clocks.on(1.0, jump=-3600.0)
    await watch.check_clock()
    assert [round(by) for by in told] == [3600, -3600]


async def test_after_a_clock_jump_no_server_is_culled_before_a_full_idle_time() -> None:
    clocks, rounds = Clocks(), list[float]()

    async def cull(**_: object) -> None:
        rounds.append(clocks.steady)

    patient = Patient(cull, lambda: clocks.wall, lambda: clocks.steady)
    for jump in (0.0, 3600.0, 0.0, 0.0):
        clocks.on(300.0, jump=jump)
        await patient(inactive_limit=600, max_age=0)
    assert rounds == [305.0, 1205.0]

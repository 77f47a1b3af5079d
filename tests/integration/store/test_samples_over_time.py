"""Samples are stored once for each moment, thinned exactly and bounded, whatever restarts and clocks do."""

from __future__ import annotations

import random

from mlp_hub.domain.over_time.grains import GRAINS, SumsOfSpan
from mlp_hub.domain.over_time.sums import SpanSums, together
from mlp_hub.service.over_time.thinning import store_sample
from mlp_hub.store import Database
from mlp_hub.store.tables import over_time as o

FINE, FIVE, HOUR = (grain.seconds for grain in GRAINS)
START = 1_900_000_800 // FINE
"""A whole hour, as a span of the finest grain."""
assert START * FINE % HOUR == 0


def sums(cpu: int, waits: int = 0) -> SpanSums:
    held = (cpu, 0, 0)
    return SpanSums(1, held, held, waits={7: waits} if waits else {})


class Sampler:
    """Stores samples as one process does."""

    def __init__(self, db: Database) -> None:
        self.db, self.last = db, None

    last: int | None

    async def at(self, number: int, **tenants: SpanSums) -> bool:
        cluster = together(tenants.values())._replace(samples=1)
        rows = {"": cluster, **tenants}
        stored = await self.db.write(lambda tx: store_sample(tx.over_time, number, self.last, rows))
        if stored:
            self.last = number
        return stored


def rows(db: Database, grain: int, tenant: str | None = None) -> list[SumsOfSpan]:
    found = db.read_now(lambda tx: tx.over_time.between(grain, 0, 2**31 - 1))
    return sorted(one for one in found if tenant is None or one.tenant == tenant)


async def test_values_come_back_equal_and_are_of_their_tenant(db: Database) -> None:
    chance = random.Random(3)
    full = SpanSums(
        1, (1, 2, 3), (4, 5, 6), (7, 8, 9), (10, 11, 12), 1, (None, 13, 0), 14, 15, 16, 17,
        {"WaitingForQuota": 18}, {19: 20}, (21, 22, 23), 24, 25, {-1: 26, 1000: 27},
    )  # fmt: skip
    many = {f"t{i}": full._replace(held=(chance.randrange(2**40), 0, 0)) for i in range(200)}
    assert await Sampler(db).at(START, **many)
    assert {one.tenant: one.sums for one in rows(db, FINE) if one.tenant} == many
    one = db.read_now(lambda tx: tx.over_time.of(FINE, range(START - 600, START + 600), {"t7", ""}))
    assert {row.tenant for row in one} == {"t7", ""}


async def test_a_sample_of_a_span_is_stored_once_also_after_a_takeover(db: Database) -> None:
    first, second = Sampler(db), Sampler(db)
    assert await first.at(START, red=sums(1))
    assert not await first.at(START, red=sums(2))
    assert not await second.at(START, red=sums(3))
    assert await second.at(START + 1, red=sums(4))
    assert [one.sums.held[0] for one in rows(db, FINE, "red")] == [1, 4]


async def test_thinning_is_exact_over_restarts_and_gaps(db: Database) -> None:
    chance = random.Random(4)
    told: dict[int, SpanSums] = {}
    sampler = Sampler(db)
    for number in range(START, START + 361):
        if chance.random() < 0.05:
            sampler = Sampler(db)  # restarted, or another replica
        if 130 <= number - START < 175 or chance.random() < 0.02:
            continue  # nobody ran
        busy = chance.random() < 0.7
        one = {"red": sums(chance.randrange(8000), chance.randrange(3))} if busy else {}
        told[number] = one.get("red", SpanSums())
        assert await sampler.at(number, **one)
    for seconds in (FIVE, HOUR):
        per = seconds // FINE
        found = {one.since: one.sums for one in rows(db, seconds, "red")}
        cluster = {one.since: one.sums for one in rows(db, seconds, "")}
        for begin in range(START, START + 360, per):
            parts = [told[n] for n in range(begin, begin + per) if n in told]
            if not parts:
                assert begin * FINE not in cluster, "a gap stays one"
                continue
            assert cluster[begin * FINE].samples == len(parts)
            expected, stored = together(parts), found.get(begin * FINE, SpanSums())
            assert (stored.held, stored.waits, stored.held_most) == (
                expected.held,
                expected.waits,
                expected.held_most,
            )


async def test_rows_are_bounded_and_idle_tenants_have_none(db: Database) -> None:
    sampler = Sampler(db)
    fine, five = GRAINS[0].kept, GRAINS[1].kept
    for number in range(START, START + 3 * fine):
        await sampler.at(number, red=sums(1))
    assert len(rows(db, FINE, "red")) <= fine + 2 * FIVE // FINE
    assert {one.tenant for one in rows(db, FINE)} == {"", "red"}
    for hour in range(2, 60):  # few samples: what is old goes nevertheless
        for five_minutes in range(12):
            await sampler.at(START + hour * 120 + 3 * fine + five_minutes * 10, red=sums(1))
    assert len(rows(db, FIVE, "red")) <= five + 2 * HOUR // FIVE
    newest = rows(db, FIVE, "")[-1].since
    assert rows(db, FIVE, "")[0].since >= newest - (five + 2 * HOUR // FIVE) * FIVE


async def test_a_clock_that_is_put_back_tells_each_moment_once(db: Database) -> None:
    sampler = Sampler(db)
    for number in range(START, START + 120):
        await sampler.at(number, red=sums(1000), blue=sums(5))
    for number in range(START + 60, START + 240):
        assert await sampler.at(number, red=sums(2000))
    found = rows(db, FINE, "red")
    assert len({one.since for one in found}) == len(found)
    assert {one.sums.held[0] for one in found if one.since >= (START + 60) * FINE} == {2000}
    assert not [one for one in rows(db, FINE, "blue") if one.since >= (START + 60) * FINE], "as measured now"
    fives = {one.since: one.sums for one in rows(db, FIVE, "red")}
    assert fives[START * FINE].held[0] == 10 * 1000
    assert fives[(START + 100) * FINE].held[0] == 10 * 2000


async def test_a_clock_that_is_wrong_for_a_moment_costs_little(db: Database) -> None:
    sampler = Sampler(db)
    for number in range(START, START + 200):
        await sampler.at(number, red=sums(1))
    before = len(rows(db, FINE, "red"))
    year = 365 * 86_400 // FINE
    for wrong in (START + 200 + year, 40, START + 200 - 2 * year):
        await sampler.at(wrong, red=sums(9))
    for number in range(START + 200, START + 240):
        assert await sampler.at(number, red=sums(1))
    right = [one for one in rows(db, FINE, "red") if START <= one.since // FINE < START + 240]
    assert len(right) >= before + 40 - 6 * FIVE // FINE
    assert len(rows(db, FIVE, "red")) >= 15


async def test_a_row_that_cannot_be_read_is_a_gap_and_stops_nothing(db: Database) -> None:
    sampler = Sampler(db)
    for number in range(START, START + 15):
        await sampler.at(number, red=sums(1))
    bad = o.update().where(o.c.number == START + 12, o.c.tenant == "red").values(sums=b"\xff\x00")
    await db.write(lambda tx: tx.connection.execute(bad))
    for number in range(START + 15, START + 21):
        assert await sampler.at(number, red=sums(1))
    assert [one.sums.held[0] for one in rows(db, FIVE, "red")] == [10, 9]


async def test_a_deleted_tenants_samples_go_with_it(db: Database) -> None:
    sampler = Sampler(db)
    for number in range(START, START + 11):
        await sampler.at(number, red=sums(1), blue=sums(2))
    await db.write(lambda tx: tx.over_time.remove("red"))
    assert {one.tenant for grain in (FINE, FIVE) for one in rows(db, grain)} == {"", "blue"}

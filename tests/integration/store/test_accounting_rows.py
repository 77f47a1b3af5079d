"""The accounting agrees with the ledger to the millisecond, over kills, midnights, expired tries and clocks that jump."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from mlp_hub.domain.accounting.days import DAY_S
from mlp_hub.domain.accounting.spans import BLOCK, NOTHING_HELD, HeldSums
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.stored.storage import StoredItem, StoredKind
from mlp_hub.domain.workload.ledger import RequestPhase, ResourceRequest
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.service.accounting import rollup
from mlp_hub.service.accounting.service import UsageFound, UsageService
from mlp_hub.service.accounting.sums import UsageAsked
from mlp_hub.store import Database
from mlp_hub.store.repos.workload.ledger import MeasuredUse
from mlp_hub.store.tx import Tx

START = 22_000 * DAY_S + 80_000.0
"""Some hours before a midnight."""
P = RequestPhase
TENANTS, USERS = ("red", "blue"), ("ann", "bob", "cem")
NODE = NodeInfo("n1", Resources(cpu=64_000, ram=65_536), Resources(cpu=66_000, ram=70_000))


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


class Meter:
    """Adds up what the ledger says is held, moment by moment, in another way than the accounting does."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.total = clock, dict.fromkeys(TENANTS, NOTHING_HELD)

    def pass_time(self, db: Database, seconds: float) -> None:
        rows = db.read_now(lambda tx: tx.ledger.held(self.clock.now))
        before = self.clock.now
        self.clock.now += seconds
        for row in rows:
            end = self.clock.now
            if row.phase is P.TRIED and row.expires_at is not None:
                end = min(end, row.expires_at)
            ms = int(end * 1000) - int(before * 1000)
            s = int(end * 1000) // 1000 - int(before * 1000) // 1000
            a = row.amount
            held = HeldSums(a.cpu * ms, a.gpu * ms, a.ram * ms, -(-a.rom // BLOCK) * s)
            self.total[row.tenant] = self.total[row.tenant].plus(held)


def request(name: str, chance: random.Random, clock: Clock, phase: RequestPhase) -> ResourceRequest:
    gpu = chance.choice([0, 0, 1000, 4000])
    kinds = (("a100", gpu),) if gpu and chance.random() < 0.7 else ()
    amount = Resources(chance.randrange(100, 9000), gpu, chance.randrange(100, 9000), 0, kinds)
    applier = chance.choice(["jm", "sp"])
    holder = "app web 1" if chance.random() < 0.3 else f"j{name}@2"
    expires = clock.now + chance.uniform(0, 400) if phase is P.TRIED else None
    return ResourceRequest(
        name,
        applier,
        chance.choice(TENANTS),
        amount,
        phase,
        clock.now,
        expires,
        holder=holder,
        user=chance.choice(USERS),
    )


class KilledError(Exception):
    pass


async def step(db: Database, clock: Clock, chance: random.Random, number: int) -> None:
    held = db.read_now(lambda tx: tx.ledger.held(clock.now))

    def work(tx: Tx) -> None:
        what = chance.randrange(7)
        if what <= 1 or not held:
            phase = chance.choice([P.TRIED, P.CONFIRMED, P.PENDING])
            new = [request(f"{number}-{i}", chance, clock, phase) for i in range(chance.randrange(1, 4))]
            tx.ledger.put_many(new)
        elif what == 2:
            row = chance.choice(held)
            tx.ledger.put(replace(row, amount=row.amount + Resources(cpu=500, ram=7)))
        elif what == 3:
            some = [r for r in held if r.applier == "jm"][:5]
            used = [chance.choice([None, MeasuredUse(300, 50, clock.now - 30)]) for _ in some]
            tx.ledger.release_many("jm", [r.id for r in some], used)
        elif what == 4:
            row = chance.choice(held)
            tx.ledger.put(replace(row, phase=P.RELEASED, expires_at=None))
        elif what == 5:
            row = chance.choice(held)
            tx.ledger.put(replace(row, phase=P.CONFIRMED, expires_at=None))
        else:
            uid = f"s{chance.randrange(4)}"
            if chance.random() < 0.3:
                tx.stored.remove(uid)
            else:
                size = chance.randrange(10**12)
                owner = USERS[int(uid[1]) % 3]
                tx.stored.put(
                    StoredItem(uid, StoredKind.DATASET, TENANTS[int(uid[1]) % 2], owner, uid, START, size)
                )
        if chance.random() < 0.2:
            raise KilledError

    with contextlib.suppress(KilledError):
        await db.write(work)


def summed(found: UsageFound) -> HeldSums:
    return found.total.held


@pytest.mark.parametrize("seed", range(4))
async def test_sums_over_any_split_agree_with_the_ledger(
    db: Database, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance, clock = random.Random(seed), Clock()
    db.clock = clock
    monkeypatch.setattr(rollup, "MOST", 5)
    service, meter = UsageService(db, lambda: [NODE], clock), Meter(clock)
    for number in range(120):
        await step(db, clock, chance, number)
        meter.pass_time(db, chance.choice([0.001, 1.37, 200.0, 5000.0]) * chance.random())
        if chance.random() < 0.2:
            await service.roll_up.roll_up()
    first = int(START // DAY_S)
    span = (first, first + 10)
    for tenant in TENANTS:
        truth = meter.total[tenant]
        for by in (
            (),
            ("day",),
            ("month",),
            ("user",),
            ("work", "gpu_kind"),
            ("day", "name", "user"),
            ("tenant",),
        ):
            held = summed(await service.find(UsageAsked(*span, by, {"tenant": tenant})))
            assert held[:4] == truth[:4], by
        by_user = [
            await service.find(UsageAsked(*span, (), {"tenant": tenant, "user": user})) for user in USERS
        ]
        assert held_of(by_user)[:4] == truth[:4]
    both = await service.find(UsageAsked(*span, ("user",)), nodes=True)
    assert summed(both)[:4] == meter.total["red"].plus(meter.total["blue"])[:4]
    assert [key for key, _ in both.lines] == sorted(
        {(user,) for user in USERS} & {key for key, _ in both.lines}
    )


def held_of(found: Sequence[UsageFound]) -> HeldSums:
    total = NOTHING_HELD
    for one in found:
        total = total.plus(summed(one))
    return total


async def test_a_lot_counts_once_where_the_process_dies_in_the_middle(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    db.clock = clock
    await db.write(lambda tx: tx.ledger.put(confirmed("a")))
    clock.now += 50
    await db.write(lambda tx: tx.ledger.release_many("jm", ["a"]))
    service = UsageService(db, list, clock)
    real = type(db.read_now(lambda tx: tx.accounting)).added_up

    def dies(*_: object) -> None:
        raise KilledError

    monkeypatch.setattr("mlp_hub.store.repos.workload.accounting.Accounting.added_up", dies)
    with pytest.raises(KilledError):
        await service.roll_up.roll_up()
    assert await cores(service) == 50.0
    monkeypatch.setattr("mlp_hub.store.repos.workload.accounting.Accounting.added_up", real)
    for _ in range(3):
        await service.roll_up.roll_up()
        assert await cores(service) == 50.0


def confirmed(name: str, **more: object) -> ResourceRequest:
    given = {"holder": name, "user": "ann", **more}
    return ResourceRequest(name, "jm", "red", Resources(cpu=1000), P.CONFIRMED, START, **given)  # type: ignore[arg-type]


async def cores(service: UsageService, **where: str) -> float:
    first = int(START // DAY_S)
    return summed(await service.find(UsageAsked(first - 40, first + 40, (), where))).cpu / 1e6


async def test_work_that_runs_for_days_is_cut_each_day_and_counts_once(db: Database) -> None:
    clock = Clock()
    db.clock = clock
    service = UsageService(db, list, clock)
    await db.write(lambda tx: tx.ledger.put(confirmed("a")))
    for _ in range(5):
        clock.now += DAY_S
        await service.roll_up.roll_up()
        assert not db.read_now(lambda tx: tx.accounting.spans_of(None, None))
    assert await cores(service) == 5 * DAY_S
    found = await service.find(UsageAsked(int(START // DAY_S), int(START // DAY_S) + 6, ("day",)))
    assert [line.held.cpu for _, line in found.lines] == [6400 * 10**6, *[86_400 * 10**6] * 4, 80_000 * 10**6]
    used = [MeasuredUse(500, 10, START + 100)]
    await db.write(lambda tx: tx.ledger.release_many("jm", ["a"], used))
    await service.roll_up.roll_up()
    total = summed(await service.find(UsageAsked(int(START // DAY_S), int(START // DAY_S) + 6)))
    assert total.cpu == total.cpu_measured == 5 * DAY_S * 10**6
    assert total.cpu_used == (5 * DAY_S - 100) * 500 * 1000


@pytest.mark.parametrize("by", [7200.0, -7200.0, 400 * DAY_S])
async def test_a_clock_that_is_set_neither_adds_nor_takes_time(db: Database, by: float) -> None:
    clock = Clock()
    db.clock = clock
    service = UsageService(db, list, clock)
    await db.write(lambda tx: tx.ledger.put(confirmed("a")))
    await service.roll_up.roll_up()
    clock.now += 1000
    clock.now += by
    await db.write(lambda tx: tx.ledger.put_off(by))
    await service.roll_up.put_off(by)
    clock.now += 1000
    await db.write(lambda tx: tx.ledger.release_many("jm", ["a"]))
    await service.roll_up.roll_up()
    sums = db.read_now(lambda tx: tx.accounting.sums("month", 0, 10_000, (), where={"work": "job"}))
    assert sum(held.cpu for _, _, held in sums) == 2000 * 10**6


async def test_a_deleted_tenant_and_a_person_who_left_stay_in_the_sums_without_their_names(
    db: Database,
) -> None:
    clock = Clock()
    db.clock = clock
    service = UsageService(db, list, clock)
    for name in ("a", "b"):
        await db.write(lambda tx, name=name: tx.ledger.put(confirmed(name)))  # type: ignore[misc]
        clock.now += 10
        await db.write(lambda tx, name=name: tx.ledger.release_many("jm", [name]))  # type: ignore[misc]
        if name == "a":
            await service.roll_up.roll_up()
    await db.write(lambda tx: tx.accounting.forget_user("ann"))
    await db.write(lambda tx: tx.accounting.rename_tenant("red"))
    assert await cores(service, user="ann") == await cores(service, tenant="red") == 0
    await service.roll_up.roll_up()
    assert await cores(service, user="ann") == await cores(service, tenant="red") == 0
    assert await cores(service, tenant="red (deleted)", user="") == 20


async def test_nodes_and_reserves_of_their_systems_have_separate_lines(db: Database) -> None:
    clock = Clock()
    db.clock = clock
    nodes = [NODE]
    service = UsageService(db, lambda: nodes, clock)
    await service.roll_up.roll_up()
    clock.now += 100
    nodes.append(replace(NODE, name="n2"))
    await service.roll_up.roll_up()
    clock.now += 10
    lines = await service.lines(UsageAsked(int(START // DAY_S), int(START // DAY_S) + 1), limit=1, nodes=True)
    assert lines.nodes is not None
    assert lines.platform is not None
    assert (lines.nodes.core_s, lines.platform.core_s) == (64 * 100 + 128 * 10, 2 * 100 + 4 * 10)
    assert lines.total.core_s == 0
    assert lines.free == lines.nodes

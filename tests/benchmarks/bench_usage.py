"""The accounting of a year with a million jobs: how long its questions take, and what its sums take on the disk."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
import statistics
import time
from pathlib import Path

from bench_common import Context, Figure
from mlp_hub.domain.accounting.days import DAY_S, read_day
from mlp_hub.domain.accounting.spans import LedgerSpan, rolled_up
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.workload.ledger import RequestPhase, ResourceRequest
from mlp_hub.service.accounting.service import UsageService
from mlp_hub.service.accounting.sums import PRICES, UsageAsked
from mlp_hub.store.database import Database
from mlp_hub.store.repos.workload.ledger import Requests

NAME = "usage"
ABOUT = (
    "sums of a year of 1,000,000 jobs of 1,000 people in 200 teams, with 5 kinds of GPU and two prices: medians of questions to the service, "
    "the bytes of the sums for a day, the roll-up of ended spans, and what a job costs more in the ledger"
)
JOBS, TEAMS, PEOPLE, DAYS, ASKED, LOT = 1_000_000, 200, 1000, 365, 7, 20_000
KINDS = ("", "", "", "a100", "h100", "h200", "l4", "mi300")
COMMAND = "make bench ONLY=usage"
FIRST = read_day("2031-01-01") or 0
LIST = {
    "currency": "EUR",
    "periods": [
        {"begins": "2030-01-01", "ends": "2031-07-10", "core_hour": "0.04", "gpu_hour": {"*": "2.1"}},
        {"begins": "2031-07-10", "core_hour": "0.05", "gpu_hour": {"*": "2.3", "l4": "0.7"}},
    ],
}


def run(context: Context) -> list[Figure]:
    """Fill the sums and ask."""
    return asyncio.run(_figures(context.tmp / "usage"))


async def _figures(root: Path) -> list[Figure]:
    root.mkdir(parents=True)
    file = root / "mlp.sqlite"
    db = Database(str(file))
    db.create_schema()
    now = [(FIRST + DAYS) * float(DAY_S)]
    db.clock = lambda: now[0]
    service = UsageService(db, list, db.clock)
    await db.write(lambda tx: tx.settings.put(PRICES, LIST))
    figures = [*await _roll_up(db, service, now), *await _ledger(db)]
    before = _bytes(file)
    chance = random.Random(7)
    for day in range(DAYS):
        spans = [_span(chance, FIRST + day) for _ in range(JOBS // DAYS)]
        await db.write(lambda tx, spans=spans: tx.accounting.add(rolled_up(spans)), durable=False)
    whole = (_bytes(file) - before) / DAYS
    await service.roll_up.roll_up()
    await db.write(lambda tx: tx.accounting.delete_names(FIRST + DAYS - 62))
    kept = (await db.read(lambda tx: _rows(tx.connection))) / (DAYS - 62)
    year = (FIRST, FIRST + DAYS)
    for title, asked in (
        ("a year by month and tenant", UsageAsked(*year, ("month", "tenant"))),
        ("a year by tenant and person", UsageAsked(*year, ("tenant", "user"))),
        ("a year by day", UsageAsked(*year, ("day",))),
        (
            "a year of one tenant by day and kind of GPU",
            UsageAsked(*year, ("day", "gpu_kind"), {"tenant": "t7"}),
        ),
        (
            "the last 60 days of one tenant by name",
            UsageAsked(year[1] - 60, year[1], ("name",), {"tenant": "t7"}),
        ),
    ):
        took, busy = [], time.process_time()
        for _ in range(ASKED):
            begun = time.perf_counter()
            await service.lines(asked, limit=1000)
            took.append(time.perf_counter() - begun)
        cpu = (time.process_time() - busy) / ASKED * 1000
        note = (
            f"{cpu:.0f} ms of processor time; slowest of {ASKED}: {max(took) * 1000:.0f} ms; wanted: 1,000 ms"
        )
        figures.append(Figure(title, statistics.median(took) * 1000, "ms", note=note, command=COMMAND))
    note = f"2,740 jobs a day, each name another; after 62 days {kept:.0f} rows of a day stay"
    figures.append(Figure("sums of a day on the disk", whole, "bytes", note=note, command=COMMAND))
    db.close()
    return figures


def _span(chance: random.Random, day: int) -> LedgerSpan:
    user = chance.randrange(PEOPLE)
    kind = chance.choice(KINDS)
    begins = day * DAY_S + chance.random() * DAY_S
    gpu = 1000 if kind else 0
    kinds = ((kind, gpu),) if kind else ()
    ends = begins + chance.expovariate(1 / 3600)
    name = f"j{chance.randrange(10**9)}"
    return LedgerSpan(
        "jm",
        f"t{user % TEAMS}",
        f"u{user}",
        name,
        4000,
        gpu,
        8192,
        0,
        kinds,
        begins,
        ends,
        None,
        1000,
        900,
        begins,
    )


async def _roll_up(db: Database, service: UsageService, now: list[float]) -> list[Figure]:
    """Measure how many ended spans are added up in a second."""
    chance = random.Random(1)
    day = int(now[0] // DAY_S) - 400
    spans = [_span(chance, day) for _ in range(LOT)]
    await db.write(lambda tx: [tx.accounting.add_span(span) for span in spans] and None)
    begun = time.perf_counter()
    added = await service.roll_up.roll_up()
    took = time.perf_counter() - begun
    note = "in lots of 1,000, each a durable transaction"
    return [Figure("ended spans added up", added / took, "spans/s", note=note, command=COMMAND)]


async def _ledger(db: Database) -> list[Figure]:
    """Measure a job's admission and release in the ledger, with its span and without."""
    cut, took = Requests._cut, {}
    rows = [
        ResourceRequest(
            f"b{i}", "jm", "t1", Resources(cpu=1000), RequestPhase.CONFIRMED, 0.0, holder="j", user="u"
        )
        for i in range(LOT)
    ]
    for kept in (False, True, False, True):
        Requests._cut = cut if kept else lambda *_: None  # type: ignore[assignment, method-assign]
        begun = time.perf_counter()
        for start in range(0, LOT, 500):
            part = rows[start : start + 500]
            await db.write(lambda tx, part=part: tx.ledger.put_many(part))
            await db.write(lambda tx, part=part: tx.ledger.release_many("jm", [r.id for r in part]))
        took[kept] = min(took.get(kept, 1e9), (time.perf_counter() - begun) / LOT * 1e6)
    Requests._cut = cut  # type: ignore[method-assign]
    note = f"{took[True]:.1f} us with the span and {took[False]:.1f} us without, in lots of 500"
    more = took[True] - took[False]
    return [Figure("a job in the ledger: more for its span", more, "us", note=note, command=COMMAND)]


def _rows(connection: object) -> int:
    query = "SELECT count(*) FROM usage_total WHERE grain = 'day'"
    return int(connection.exec_driver_sql(query).scalar())  # type: ignore[attr-defined]


def _bytes(file: Path) -> int:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return file.stat().st_size

"""Use that is only a job's own report, or of an unknown source, is marked as that, and changes no cost."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

import pytest
from sqlalchemy import insert, select

from mlp_api.platform.accounting import Prices, PricesOfPeriod, UsageLine
from mlp_hub.domain.accounting.days import DAY_S, month_of, month_text
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.workload.ledger import RequestPhase, ResourceRequest
from mlp_hub.service.accounting.focus import focus_lines
from mlp_hub.service.accounting.report import month_report
from mlp_hub.service.accounting.service import UsageService
from mlp_hub.service.accounting.sums import UsageAsked
from mlp_hub.store import Database, migrate
from mlp_hub.store import engine as engines
from mlp_hub.store.repos.workload.ledger import MeasuredUse
from mlp_language.render import Reader
from support.stores.older_rows import row, table_of

BEFORE = "0051"
START = 22_000.0 * DAY_S
HOUR = 3600.0
DAY = int(START // DAY_S)
SPAN = (DAY - 1, DAY + 2)


class Clock:
    now = START

    def __call__(self) -> float:
        return self.now


def held(user: str) -> ResourceRequest:
    amount, phase = Resources(cpu=2000, ram=2048), RequestPhase.CONFIRMED
    return ResourceRequest(
        f"{user}.1", "jm", "red", amount, phase, START, holder=f"{user}@1", user=user, last="confirm"
    )


async def run_for_an_hour(db: Database, clock: Clock, used: Mapping[str, MeasuredUse | None]) -> UsageService:
    """Have a job of each user hold 2 cores and 2 GiB for an hour, of which this was measured or reported."""
    db.clock = clock
    service = UsageService(db, list, clock, measures=False)
    periods = [PricesOfPeriod(begins="2030-01-01", core_hour="1", gib_hour="1")]
    await service.set_prices(Prices(currency="EUR", periods=periods), actor="root")
    await db.write(lambda tx: tx.ledger.put_many([held(user) for user in used]))
    clock.now = START + HOUR
    await db.write(
        lambda tx: tx.ledger.release_many("jm", [f"{user}.1" for user in used], list(used.values()))
    )
    return service


async def lines_of(service: UsageService) -> dict[str | None, UsageLine]:
    lines = await service.lines(UsageAsked(*SPAN, ("user",)), limit=10)
    return {line.user: line for line in lines.lines}


JOBS = {
    "measured": MeasuredUse(1000, 1024, START),
    "more": MeasuredUse(2000, 2048, START, cpu_reported=True, ram_reported=True),
    "less": MeasuredUse(0, 0, START, cpu_reported=True, ram_reported=True),
    "much-more": MeasuredUse(2**60, 2**60, START, cpu_reported=True, ram_reported=True),
    "hidden": None,
    "memory": MeasuredUse(1000, 512, START, ram_reported=True),
}


@pytest.mark.parametrize("summed_up", [False, True])
async def test_a_report_of_less_or_more_changes_no_cost_and_is_marked(db: Database, summed_up: bool) -> None:
    service = await run_for_an_hour(db, Clock(), JOBS)
    if summed_up:
        await service.roll_up.roll_up()
    found = await lines_of(service)
    assert {user: line.cost for user, line in found.items()} == dict.fromkeys(JOBS, "4.000000"), (
        "2 cores and 2 GiB"
    )
    assert {user: (line.core_reported_s, line.memory_reported_gib_s) for user, line in found.items()} == {
        "measured": (0.0, 0.0),
        "more": (2 * HOUR, 2 * HOUR),
        "less": (2 * HOUR, 2 * HOUR),
        "much-more": (2 * HOUR, 2 * HOUR),
        "hidden": (0.0, 0.0),
        "memory": (0.0, 2 * HOUR),
    }
    assert not any(line.core_unknown_s or line.memory_unknown_gib_s for line in found.values())
    assert found["hidden"].core_unmeasured_s == 2 * HOUR, "who reports nothing is not measured"
    assert (found["less"].core_used_s, found["less"].core_idle_s) == (0.0, 2 * HOUR)


async def test_the_file_for_finance_departments_has_the_source_of_each_quantity(db: Database) -> None:
    service = await run_for_an_hour(db, Clock(), JOBS)
    text = b"".join(focus_lines(await service.find(UsageAsked(*SPAN, ("user",))))).decode("utf-8-sig")
    rows = {(row["x_User"], row["SkuId"]): row for row in csv.DictReader(io.StringIO(text))}

    def parts(user: str, sku: str) -> tuple[float, ...]:
        names = ("BilledCost", "ConsumedQuantity", "x_UsedQuantity", "x_IdleQuantity")
        names += ("x_ReportedQuantity", "x_UnknownSourceQuantity")
        return tuple(float(rows[user, sku][name]) for name in names)

    assert parts("measured", "cpu") == (2, 2, 1, 1, 0, 0)
    assert parts("less", "cpu") == (2, 2, 0, 2, 2, 0)
    assert parts("more", "ram") == (2, 2, 2, 0, 2, 0)
    assert parts("memory", "cpu") == (2, 2, 1, 1, 0, 0)
    assert parts("memory", "ram") == (2, 2, 0.5, 1.5, 2, 0)


async def test_the_months_report_says_whose_use_is_a_report_only_where_there_is_one(db: Database) -> None:
    clock = Clock()
    service = await run_for_an_hour(db, clock, {"ann": JOBS["measured"], "bob": JOBS["less"]})
    month = month_text(month_of(DAY))
    text = await month_report(service, clock(), month, "red", Reader("en"))
    assert (
        "The use of 2.00 core-hours and 2.00 GiB-hours of memory is known by the jobs' own reports alone."
        in text
    )
    table = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"
    ]
    at = table[0].index("core-hours by own report")
    assert {row[0]: row[at] for row in table[2:5]} == {"ann": "0.00", "bob": "2.00", "**total**": "2.00"}
    assert "unknown source" not in text


async def test_without_reports_the_report_of_a_month_has_no_such_column(db: Database) -> None:
    clock = Clock()
    service = await run_for_an_hour(db, clock, {"ann": JOBS["measured"]})
    text = await month_report(service, clock(), month_text(month_of(DAY)), "red", Reader("en"))
    assert "own report" not in text
    assert "source" not in text


# ---------------------------------------------------------- rows of an older version


def older_rows(url: str) -> None:
    """Store sums, and a span that is not in them yet, as an older version did."""
    migrate.upgrade(url, BEFORE)
    engine = engines.make_engine(engines.parse(url), write=True)
    ms = int(HOUR * 1000)
    sums: dict[str, Any] = {"cpu": 2000 * ms, "cpu_used": 500 * ms, "cpu_measured": 2000 * ms}
    sums |= {"ram": 1024 * ms, "ram_used": 512 * ms, "ram_measured": 1024 * ms}
    span: dict[str, Any] = {"applier": "jm", "holder": "digits@1", "cpu": 1000, "ram": 1024}
    span |= {"begins": START, "ends": START + HOUR, "cpu_used": 400, "ram_used": 100, "ran_from": START}
    try:
        with engine.begin() as connection:
            totals, spans = table_of(connection, "usage_total"), table_of(connection, "ledger_span")
            for grain, period in (("day", DAY), ("month", month_of(DAY))):
                key = {"grain": grain, "period": period, "tenant": "red", "user": "ann", "work": "job"}
                connection.execute(insert(totals), row(totals, **key, **sums))
            connection.execute(insert(spans), row(spans, id=1, tenant="red", user="ann", **span))
    finally:
        engine.dispose()


@pytest.mark.parametrize("measures", [True, False])
async def test_older_use_was_measured_on_one_machine_and_is_of_an_unknown_source_elsewhere(
    empty_url: str, measures: bool
) -> None:
    older_rows(empty_url)
    for _ in range(2):
        migrate.upgrade(empty_url)
    db = Database(empty_url)
    clock = Clock()
    clock.now = START + 2 * HOUR
    db.clock = clock
    try:
        services = [UsageService(db, list, clock, measures=kind) for kind in (measures, True)]
        for service in services:  # the second one is of a hub that moved to one machine later
            await service.roll_up.roll_up()
            line = (await lines_of(service))["ann"]
            assert (line.core_s, line.core_used_s, line.core_idle_s) == (3 * HOUR, 0.9 * HOUR, 2.1 * HOUR)
            assert (line.core_reported_s, line.memory_reported_gib_s) == (0.0, 0.0)
            unknown = (line.core_unknown_s, line.memory_unknown_gib_s)
            assert unknown == ((0.0, 0.0) if measures else (3 * HOUR, 2 * HOUR))
        text = await month_report(services[0], clock(), month_text(month_of(DAY)), "red", Reader("en"))
        assert ("core-hours of unknown source" in text) is not measures
        assert ("was recorded by an older version" in text) is not measures
    finally:
        db.close()


def test_a_downgrade_keeps_the_sums(empty_url: str) -> None:
    older_rows(empty_url)
    migrate.upgrade(empty_url)
    migrate.downgrade(empty_url, BEFORE)
    engine = engines.make_engine(engines.parse(empty_url), write=True)
    try:
        with engine.begin() as connection:
            totals = table_of(connection, "usage_total")
            assert len(connection.execute(select(totals.c.cpu_measured)).all()) == 2
            assert "cpu_unknown" not in totals.c
    finally:
        engine.dispose()

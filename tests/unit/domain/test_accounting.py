"""Spans are split exactly by day and kind, months are months, and prices are refused in words."""

from __future__ import annotations

import itertools
import random
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

import pytest

from mlp_hub.domain.accounting import days
from mlp_hub.domain.accounting.prices import PriceList, PricePeriod, money, price_text, read_price
from mlp_hub.domain.accounting.spans import NOTHING_HELD, HeldSums, LedgerSpan, rolled_up, work_of
from mlp_hub.domain.errors import Refused

EPOCH = date(1970, 1, 1)


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def span(begins: float, ends: float, **more: object) -> LedgerSpan:
    given: dict[str, object] = {"cpu": 2000, "gpu": 0, "ram": 1024, "rom": 0, "kinds": (), **more}
    return LedgerSpan("jm", "red", "ann", "digits@2", begins=begins, ends=ends, **given)  # type: ignore[arg-type]


def test_days_are_those_of_the_calendar() -> None:
    for offset in range(0, 240 * 366, 13):
        day = date(1969, 1, 1) + timedelta(days=offset)
        number = (day - EPOCH).days
        assert days.day_of(day.year, day.month, day.day) == number
        assert days.date_of(number) == (day.year, day.month, day.day)
    assert days.days_in(days.month_of(days.day_of(2028, 2, 3))) == 29


@pytest.mark.parametrize(
    "text",
    [
        "9999-01-01",
        "2031-13-01",
        "2031-02-30",
        "2031-00-01",
        "-031-01-01",
        "2031-1-1",
        "1999-12-31",
        "２０３１-01-01",
        "",
    ],
)
def test_a_text_that_is_not_a_date_of_these_centuries_is_none(text: str) -> None:
    assert days.read_day(text) is None
    assert days.read_month(text) is None


def test_days_are_split_into_whole_months_and_the_rest() -> None:
    chance = random.Random(3)
    for _ in range(500):
        since = chance.randrange(19_000, 25_000)
        until = since + chance.randrange(1, 500)
        covered: list[int] = []
        for grain, first, last in days.months_and_days(since, until):
            low, high = (days.first_day(first), days.first_day(last)) if grain == "month" else (first, last)
            covered += range(low, high)
        assert covered == list(range(since, until))


def test_work_over_midnight_counts_on_both_days_and_nothing_is_lost() -> None:
    one = span(at("2031-02-28T23:59:59.250"), at("2031-03-01T00:00:01.500"))
    found = [(days.day_text(day), held.cpu) for day, _, held in one.by_day()]
    assert found == [("2031-02-28", 2000 * 750), ("2031-03-01", 2000 * 1500)]


def test_parts_of_a_span_add_up_wherever_it_is_cut() -> None:
    chance = random.Random(5)
    for _ in range(300):
        begins = at("2031-03-01T00:00:00") + chance.uniform(0, 1e6)
        ends = begins + chance.choice([0.3, 50.0, 4e5]) * chance.random()
        amounts = {
            "cpu": 1300,
            "gpu": 3000,
            "ram": 777,
            "rom": chance.randrange(10**13),
            "kinds": (("a100", 1000), ("h200", 1500)),
        }
        whole = total(span(begins, ends, **amounts))
        cuts = sorted(chance.uniform(begins, ends) for _ in range(4))
        edges = [begins, *cuts, ends]
        parts = NOTHING_HELD
        for low, high in itertools.pairwise(edges):
            parts = parts.plus(total(span(low, high, **amounts)))
        assert parts == whole
        ms = int(ends * 1000) - int(begins * 1000)
        assert (whole.cpu, whole.gpu, whole.ram) == (1300 * ms, 3000 * ms, 777 * ms)


def total(one: LedgerSpan) -> HeldSums:
    found = NOTHING_HELD
    for _, _, held in one.by_day():
        found = found.plus(held)
    return found


def test_gpus_count_by_kind_and_the_cores_once() -> None:
    one = span(0.0, 10.0, gpu=3000, kinds=(("a100", 1000), ("h200", 1500)))
    by_kind = {account.gpu_kind: held for _, account, held in one.by_day()}
    assert {kind: held.gpu for kind, held in by_kind.items()} == {
        "a100": 10**7,
        "h200": 15 * 10**6,
        "": 5 * 10**6,
    }
    assert sum(held.cpu for held in by_kind.values()) == 2000 * 10_000


def test_use_counts_from_the_start_of_the_run_and_also_for_the_days_that_were_counted_before() -> None:
    one = span(
        at("2031-03-01T22:00:00"),
        at("2031-03-02T01:00:00"),
        counted=at("2031-03-02T00:00:00"),
        cpu_used=500,
        ram_used=100,
        ran_from=at("2031-03-01T23:00:00"),
    )
    first, second = (held for _, _, held in one.by_day())
    hour = 3_600_000
    assert (first.cpu, first.cpu_measured, first.cpu_used) == (0, 2000 * 2 * hour, 500 * hour)
    assert (second.cpu, second.cpu_measured, second.cpu_used) == (2000 * hour, 2000 * hour, 500 * hour)


@pytest.mark.parametrize(("told", "reported", "unknown"), [(True, 2000, 0), (False, 0, 0), (None, 0, 2000)])
def test_a_measured_amount_is_marked_by_its_source(told: bool | None, reported: int, unknown: int) -> None:
    found = total(span(0.0, 10.0, cpu_used=1, ram_used=1, cpu_reported=told, ram_reported=False))
    assert (found.cpu_reported, found.cpu_unknown) == (reported * 10_000, unknown * 10_000)
    assert (found.ram_reported, found.ram_unknown) == (0, 0)
    never = total(span(0.0, 10.0, cpu_reported=told, ram_reported=told))
    assert never.cpu_reported == never.cpu_unknown == never.ram_reported == 0, "nothing of it was measured"


def test_sums_by_day_by_month_and_by_name_are_the_same() -> None:
    sums = rolled_up([span(i * 40_000.0, i * 40_000.0 + 90_001.5) for i in range(60)])
    by_grain = dict.fromkeys(("day", "month", "name"), NOTHING_HELD)
    for (grain, _, _), held in sums.items():
        by_grain[grain] = by_grain[grain].plus(held)
    assert len(set(by_grain.values())) == 1
    assert not any(account.name for grain, _, account in sums if grain != "name")


def test_a_span_that_ends_before_it_begins_is_nothing() -> None:
    assert total(span(100.0, 50.0)) == NOTHING_HELD
    assert total(span(100.0, 100.0)) == NOTHING_HELD


def test_an_absurd_amount_fits_the_database() -> None:
    most = total(span(0.0, 31 * 86_400.0, cpu=2**60, ram=2**60, rom=2**80))
    assert max(most) < 2**63


def test_the_kind_of_work_and_its_name_are_read_from_the_ledger() -> None:
    assert work_of("jm", "digits@7") == ("job", "digits")
    assert work_of("jm", "app web 3") == ("app", "web")
    assert work_of("st", "dataset pets")[0] == "storage"
    assert work_of("sp", "ann's notebook gpu")[0] == "notebook"
    assert work_of("dm", "x")[0] == "other"


def period(begins: str, ends: str | None, cpu: int = 1) -> PricePeriod:
    number = days.read_day(begins)
    assert number is not None
    return PricePeriod(number, None if ends is None else days.read_day(ends), cpu, 0, 0, {"*": 7, "a100": 9})


@pytest.mark.parametrize(
    ("periods", "words"),
    [
        ([], "no period"),
        (
            [period("2031-01-01", "2031-02-01"), period("2031-02-02", None)],
            "no price from 2031-02-01 to 2031-02-02",
        ),
        (
            [period("2031-01-01", "2031-02-03"), period("2031-02-01", None)],
            "two prices from 2031-02-01 to 2031-02-03",
        ),
        ([period("2031-01-01", None), period("2031-02-01", None)], "has no end"),
        ([period("2031-01-01", "2031-01-01")], "not after its begin"),
    ],
)
def test_gaps_and_overlaps_are_refused_in_words(periods: list[PricePeriod], words: str) -> None:
    with pytest.raises(Refused, match=words):
        PriceList("EUR", tuple(periods)).check()


@pytest.mark.parametrize(
    "text", ["-1", "-0.000001", "1e9", "nan", "inf", "1000001", "0.0000001", "", ".", "１", "9" * 50, "0x1"]
)
def test_a_price_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        read_price(text, "core_hour")


def test_prices_are_read_and_written_exactly() -> None:
    for text in ("0", "0.042", "1", "1000000", "0.000001", "12.5"):
        assert price_text(read_price(text, "x")) == text
    assert read_price(".5", "x") == 500_000
    assert money(Fraction(1, 3), 2) == "0.33"
    assert money(Fraction(5, 1000), 2) == "0.01"
    with pytest.raises(Refused, match="currency"):
        PriceList("euro", (period("2031-01-01", None),)).check()


def test_a_month_of_storage_costs_its_price_in_every_month() -> None:
    price = PricePeriod(0, None, 0, 0, 3_000_000)
    for month in range(720, 760):
        since = days.first_day(month) * 86_400.0
        until = days.first_day(month + 1) * 86_400.0
        held = total(span(since, until, cpu=0, ram=0, rom=2**30))
        assert price.cost(held, "", month).total == 3


def test_days_are_split_where_prices_change() -> None:
    prices = PriceList("EUR", (period("2031-01-10", "2031-01-20", 1), period("2031-01-20", None, 2)))
    first = days.read_day("2031-01-01") or 0
    parts = list(prices.parts(first, first + 31))
    assert [(a - first, b - first, None if p is None else p.cpu) for a, b, p in parts] == [
        (0, 9, None),
        (9, 19, 1),
        (19, 31, 2),
    ]
    assert list(prices.parts(first + 10, first + 12)) == [(first + 10, first + 12, prices.periods[0])]
    closed = PriceList("EUR", (period("2031-01-10", "2031-01-20", 1),))
    assert [p for *_, p in closed.parts(first, first + 31)] == [None, closed.periods[0], None]

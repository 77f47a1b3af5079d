"""Use and cost belong to whom they concern; bad questions and price lists are refused in words and change nothing."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from mlp_hub.domain.resources import Resources
from mlp_hub.domain.workload.ledger import RequestPhase, ResourceRequest
from support.rigs.api_rig import Answer, ApiRig

PRICES = {
    "currency": "EUR",
    "periods": [
        {"begins": "2020-01-01", "ends": "2024-01-01", "core_hour": "0.04"},
        {"begins": "2024-01-01", "core_hour": "1", "gib_hour": "0.5", "gpu_hour": {"*": "2"}},
    ],
}
HOSTILE = '=HYPERLINK("http://x")'


def ask(rig: ApiRig, path: str, token: str) -> Answer:
    return rig.ask("GET", path, token=token)


def hold(rig: ApiRig, user: str, tenant: str, name: str, cpu: int = 1000) -> None:
    """Have a user hold some cores for an hour of the past."""
    now = rig.service.clock()
    row = ResourceRequest(
        f"x{name}{user}",
        "dm",
        tenant,
        Resources(cpu=cpu),
        RequestPhase.CONFIRMED,
        now,
        holder=name,
        user=user,
    )
    db = rig.rig.db
    clock, db.clock = db.clock, lambda: now - 3600
    rig.run(db.write(lambda tx: tx.ledger.put(row)))
    db.clock = lambda: now
    rig.run(db.write(lambda tx: tx.ledger.put(row)))
    rig.run(db.write(lambda tx: tx.ledger.forget("dm", row.id)))
    db.clock = clock


def test_nobody_reads_the_use_of_others(rig: ApiRig) -> None:
    hold(rig, "bob", "blue", "bobs-secret")
    hold(rig, "ann", "red", "anns")
    for path in (
        "/users/bob/accounting",
        "/users/bob/accounting:csv",
        "/tenants/blue/accounting",
        "/tenants/blue/accounting:report",
    ):
        for token in (rig.ann, rig.rita):
            answer = ask(rig, path, token)
            assert answer.status == 403, path
            assert b"bobs-secret" not in answer.body
    for path in ("/accounting", "/accounting:csv", "/accounting:report"):
        for token in (rig.ann, rig.rita, rig.blue):
            assert ask(rig, path, token).status == 403
    assert (
        ask(rig, "/tenants/red/accounting", rig.ann).status == 403
    )  # a member, who may not see the others' names
    mine = ask(rig, "/users/ann/accounting?by=user,tenant,name,work", rig.ann).json
    assert {line["user"] for line in mine["lines"]} == {"ann"}
    assert (mine["nodes"], mine["platform"]) == (None, None)
    theirs = ask(rig, "/tenants/red/accounting?by=user,tenant&user=bob", rig.rita).json
    assert theirs["lines"] == []
    reds = ask(rig, "/tenants/red/accounting?by=tenant,user,name", rig.rita).json
    assert {line["tenant"] for line in reds["lines"]} == {"red"}
    everybody = ask(rig, "/accounting?by=tenant", rig.root_user).json
    assert {"red", "blue"} <= {line["tenant"] for line in everybody["lines"]}


@pytest.mark.parametrize(
    "query",
    [
        "month=9999-01", "month=2031-13", "month=2031-01-01", "month=", "month=0000-00",
        "since=9999-12-31", "until=9999-12-31", "since=2031-02-30", "since=2031-03-01&until=2031-03-01",
        "since=2031-03-02&until=2031-03-01", "since=2001-01-01&until=2031-01-01", "month=2031-01&since=2031-01-01",
        "by=password", "by=day;drop", "by=name&since=2020-01-01", "limit=0", "limit=-1", "limit=1001", "cursor=-1",
        "cursor=1e9", "cursor=99999999999999999999", "unknown=1", "user=%00", "tenant=../red", "by=" + "day," * 60,
    ],
)  # fmt: skip
def test_a_question_that_makes_no_sense_is_refused_in_words(rig: ApiRig, query: str) -> None:
    answer = ask(rig, f"/accounting?{query}", rig.root_user)
    assert (answer.status, answer.json["reason"]) == (403, "Invalid"), answer.body
    assert answer.json["msg"]


@pytest.mark.parametrize("month", ["9999-01", "1999-12", "2031-00", "x"])
def test_a_report_of_no_month_is_refused(rig: ApiRig, month: str) -> None:
    for path in ("/accounting:report", "/tenants/red/accounting:report"):
        answer = ask(rig, f"{path}?month={month}", rig.root_user)
        assert (answer.status, answer.json["reason"]) == (403, "Invalid")


def change(**fields: Any) -> dict[str, Any]:
    return {"currency": "EUR", "periods": [{"begins": "2031-01-01", **fields}]}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"currency": "EUR", "periods": []}, "no period"),
        ({"currency": "euro", "periods": PRICES["periods"]}, "currency"),
        (change(core_hour="-1"), "0 or more"),
        (change(gpu_hour={"a100": "-0.5"}), "gpu_hour of a100"),
        (change(core_hour="1e5"), "number"),
        (change(core_hour="NaN"), "number"),
        (change(gib_month="10000000"), "at most"),
        (change(gib_hour="0.00000001"), "6 decimals"),
        (change(begins="9999-01-01"), "2000 to 2199"),
        (change(ends="2030-01-01"), "not after"),
        (change(core_hour=5), "core_hour"),
        (change(price="5"), "price"),
        ({"currency": "EUR", "periods": [{"begins": "2031-01-01", "ends": "2031-02-01"}, {"begins": "2031-03-01"}]}, "no price from"),
        ({"currency": "EUR", "periods": [{"begins": "2031-01-01", "ends": "2031-03-01"}, {"begins": "2031-02-01"}]}, "two prices from"),
        ({"currency": "EUR", "periods": [{"begins": "2031-01-01"}] * 2}, "no end"),
        ({"currency": "EUR", "periods": [{"begins": "2031-01-01"}] * 201}, "periods"),
    ],
)  # fmt: skip
def test_a_bad_price_list_is_refused_and_the_old_one_stays(
    rig: ApiRig, body: dict[str, Any], words: str
) -> None:
    assert rig.ask("PUT", "/prices", PRICES, token=rig.root_user).status == 200
    before = ask(rig, "/prices", rig.ann).json
    answer = rig.ask("PUT", "/prices", body, token=rig.root_user)
    assert (answer.status, answer.json["reason"]) == (403, "Invalid")
    assert words in answer.json["msg"]
    assert ask(rig, "/prices", rig.ann).json == before


def test_only_a_platform_admin_sets_prices(rig: ApiRig) -> None:
    for token in (rig.ann, rig.rita, rig.notebook, rig.spawner):
        assert rig.ask("PUT", "/prices", PRICES, token=token).status == 403
        assert rig.ask("DELETE", "/prices", token=token).status == 403


def test_costs_come_and_go_with_the_price_list_and_lines_add_up(rig: ApiRig) -> None:
    for number in range(3):
        hold(rig, "ann", "red", f"part{number}", cpu=1000 + number)
    rig.ask("DELETE", "/prices", token=rig.root_user)
    without = ask(rig, "/users/ann/accounting?by=name,work&work=other", rig.ann).json
    assert without["currency"] is None
    assert {line["cost"] for line in without["lines"]} == {None}
    assert rig.ask("PUT", "/prices", PRICES, token=rig.root_user).status == 200
    found = ask(rig, "/users/ann/accounting?by=name&work=other", rig.ann).json
    parts = {line["name"]: line for line in found["lines"]}
    assert parts["part2"]["cost"] == "1.002000"
    assert parts["part2"]["core_s"] == 3607.2
    total = sum(line["core_s"] for line in found["lines"])
    assert total == pytest.approx(found["total"]["core_s"], abs=1e-6)
    seen: list[dict[str, Any]] = []
    cursor = "0"
    while cursor is not None:
        page = ask(rig, f"/users/ann/accounting?by=name&work=other&limit=1&cursor={cursor}", rig.ann).json
        assert page["total"]["cost"] == found["total"]["cost"]
        seen += page["lines"]
        cursor = page["next"]
    assert seen == found["lines"]
    actions = [entry["action"] for entry in ask(rig, "/audit?action=prices.", rig.root_user).json]
    assert set(actions) == {"prices.set", "prices.remove"}


def test_a_name_is_never_a_formula_of_a_spreadsheet_nor_a_mark_of_a_report(rig: ApiRig) -> None:
    for name in (HOSTILE, "@x", "+1", "-1", "[a](javascript:b)|<img src=x>"):
        hold(rig, "ann", "red", name)
    answer = ask(rig, "/tenants/red/accounting:csv?by=name,user,work,tenant&work=other", rig.rita)
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.body.decode())))
    assert {"BilledCost", "ChargePeriodStart", "SubAccountId", "ConsumedUnit"} <= set(rows[0])
    assert {row["ResourceName"] for row in rows} >= {f"'{HOSTILE}", "'@x", "'+1", "'-1"}
    for row in rows:
        assert not any(value.startswith(("=", "+", "-", "@")) for value in row.values())
    month = ask(rig, "/users/ann/accounting?by=month", rig.ann).json["lines"][-1]["month"]
    report = ask(rig, f"/tenants/red/accounting:report?month={month}", rig.rita)
    assert report.headers["content-type"].startswith("text/markdown")
    assert report.headers["content-disposition"].endswith(f"UTF-8''usage-red-{month}.md")
    named = ask(rig, f"/tenants/red/accounting:csv?by=user&month={month}", rig.rita)
    assert named.headers["content-disposition"].endswith(f"UTF-8''usage-red-{month}.csv")
    text = report.body.decode()
    assert "ann" in text
    assert "core-hours" in text
    assert "bob" not in text


def test_the_report_of_all_has_a_line_for_each_team_and_for_the_nodes(rig: ApiRig) -> None:
    hold(rig, "bob", "blue", "x")
    rig.run(rig.platform.accounting.roll_up.roll_up())
    month = ask(rig, "/accounting?by=month", rig.root_user).json["lines"][-1]["month"]
    text = ask(rig, f"/accounting:report?month={month}", rig.root_user).body.decode()
    assert "| red |" in text
    assert "| blue |" in text
    assert "| held by nobody |" in text
    assert "This month has not ended" in text


def test_a_report_of_a_team_that_never_was_is_refused(rig: ApiRig) -> None:
    for path in ("/tenants/nope/accounting:report", "/tenants/nope/accounting:report?month=2026-01"):
        answer = ask(rig, path, rig.root_user)
        assert (answer.status, answer.json["msg"]) == (403, "team nope does not exist")
    assert ask(rig, "/tenants/default/accounting:report", rig.root_user).status == 200


def test_a_report_says_that_no_prices_are_set_only_where_it_shows_none(rig: ApiRig) -> None:
    none = "No prices are set for this month"
    assert rig.ask("PUT", "/prices", PRICES, token=rig.root_user).status == 200
    try:
        priced = ask(rig, "/tenants/red/accounting:report?month=2023-05", rig.root_user).body.decode()
        assert (none in priced, "## Prices" in priced) == (False, True)
        assert "Total cost: 0.00 EUR" in priced
        before = ask(rig, "/tenants/red/accounting:report?month=2019-12", rig.root_user).body.decode()
        assert (none in before, "## Prices" in before, "cost in" in before) == (True, False, False)
    finally:
        rig.ask("DELETE", "/prices", token=rig.root_user)

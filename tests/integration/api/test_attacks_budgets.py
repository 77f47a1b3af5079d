"""Budgets are set by platform admins alone, seen by the team alone, and bad ones are refused in words and change nothing."""

from __future__ import annotations

from typing import Any

import pytest

from support.rigs.api_rig import ONE_ID, ApiRig
from support.waiting import wait_for

PRICES = {"currency": "EUR", "periods": [{"begins": "2020-01-01", "core_hour": "1"}]}
RED, BLUE = "/tenants/red/budget", "/tenants/blue/budget"


@pytest.fixture(autouse=True)
def _with_prices(rig: ApiRig) -> None:
    assert rig.ask("PUT", "/prices", PRICES, token=rig.root_user).status == 200
    for path in (RED, BLUE):
        rig.ask("DELETE", path, token=rig.root_user)


def test_nobody_but_a_platform_admin_sets_or_removes_a_budget(rig: ApiRig) -> None:
    assert rig.ask("PUT", RED, {"amount": "100"}, token=rig.root_user).status == 200
    for token in (rig.ann, rig.rita, rig.blue, rig.notebook):
        assert rig.ask("PUT", RED, {"amount": "9999"}, token=token).status == 403
        assert rig.ask("DELETE", RED, token=token).status == 403
        assert rig.ask("GET", "/budgets", token=token).status == 403
    assert rig.ask("GET", RED, token=rig.root_user).json["amount"] == "100"


def test_a_teams_budget_is_not_visible_to_other_teams(rig: ApiRig) -> None:
    for path, amount in ((RED, "1234.5"), (BLUE, "6789.5")):
        assert rig.ask("PUT", path, {"amount": amount}, token=rig.root_user).status == 200
    assert rig.ask("GET", RED, token=rig.ann).json["amount"] == "1234.5"  # a member, whose work it may stop
    for path, token in ((BLUE, rig.ann), (BLUE, rig.rita), (RED, rig.blue)):
        answer = rig.ask("GET", path, token=token)
        assert answer.status == 403
        assert b"6789" not in answer.body
        assert b"1234" not in answer.body
    mine = rig.ask("GET", "/users/ann/budgets", token=rig.ann).json
    assert [one["tenant"] for one in mine] == ["red"]
    assert rig.ask("GET", "/users/bob/budgets", token=rig.ann).status == 403
    everybody = rig.ask("GET", "/budgets", token=rig.root_user).json
    assert [one["tenant"] for one in everybody] == ["blue", "red"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"amount": "-5"}, "the value of amount is -5; give 0 or more"),
        ({"amount": "0"}, "more than 0"),
        ({"amount": "NaN"}, "number"),
        ({"amount": "1e9"}, "number"),
        ({"amount": "1000000001"}, "at most"),
        ({"amount": "1.0000001"}, "6 decimals"),
        ({"amount": 5}, "amount"),
        ({}, "amount"),
        ({"amount": "5", "currency": "USD"}, "give it in EUR"),
        ({"amount": "5", "currency": "credits"}, "give it in EUR"),
        ({"amount": "5", "levels": [0]}, "level 0"),
        ({"amount": "5", "levels": [-80]}, "level -80"),
        ({"amount": "5", "levels": [100000]}, "level 100000"),
        ({"amount": "5", "levels": [80, 80]}, "twice"),
        ({"amount": "5", "levels": list(range(1, 40))}, "39 levels"),
        ({"amount": "5", "levels": [80.5]}, "levels"),
        ({"amount": "5", "levels": [2**70]}, "is not from 1"),
        ({"amount": "5", "begins": "2031-03-01"}, "give both"),
        ({"amount": "5", "begins": "2031-03-01", "ends": "2031-03-01"}, "not after"),
        ({"amount": "5", "begins": "2001-03-01", "ends": "2001-04-01"}, "has not ended"),
        ({"amount": "5", "begins": "9999-01-01", "ends": "9999-02-01"}, "the value of begins"),
        ({"amount": "5", "stop": "yes"}, "stop"),
        ({"amount": "5", "stops": True}, "stops"),
    ],
)  # fmt: skip
def test_a_bad_budget_is_refused_and_the_old_one_stays(rig: ApiRig, body: dict[str, Any], words: str) -> None:
    assert rig.ask("PUT", RED, {"amount": "7"}, token=rig.root_user).status == 200
    answer = rig.ask("PUT", RED, body, token=rig.root_user)
    assert (answer.status, answer.json["reason"]) == (403, "Invalid"), answer.body
    assert words in answer.json["msg"]
    assert rig.ask("GET", RED, token=rig.ann).json["amount"] == "7"


def test_a_budget_needs_prices_and_a_team(rig: ApiRig) -> None:
    answer = rig.ask("PUT", "/tenants/nobodys/budget", {"amount": "5"}, token=rig.root_user)
    assert (answer.status, answer.json["reason"]) == (403, "NotFound")
    assert rig.ask("DELETE", "/prices", token=rig.root_user).status == 200
    answer = rig.ask("PUT", RED, {"amount": "5"}, token=rig.root_user)
    assert (answer.status, answer.json["reason"]) == (403, "Invalid")
    assert "no price list" in answer.json["msg"]
    answer = rig.ask("GET", RED, token=rig.ann)
    assert (answer.status, answer.json["reason"]) == (403, "NotFound")


def test_changes_are_in_the_audit_log(rig: ApiRig) -> None:
    rig.ask("PUT", RED, {"amount": "5"}, token=rig.root_user)
    rig.ask("PUT", RED, {"amount": "5"}, token=rig.root_user)  # which changes nothing
    rig.ask("PUT", RED, {"amount": "6", "levels": [50], "stop": True}, token=rig.root_user)
    rig.ask("DELETE", RED, token=rig.root_user)
    found = [
        one
        for one in rig.ask("GET", "/audit?action=budget.", token=rig.root_user).json
        if one["object"] == "red"
    ]
    newest = sorted(found, key=lambda one: one["time"])[-3:]
    assert [one["action"] for one in newest] == ["budget.set", "budget.set", "budget.remove"]
    assert newest[1]["detail"]["before"]["amount"] == "5"
    assert newest[1]["detail"]["after"] == {
        "amount": "6", "currency": "EUR", "levels": [50], "stop": True, "begins": None, "ends": None,
    }  # fmt: skip


def test_the_cost_of_a_job_is_for_those_who_see_the_job(rig: ApiRig) -> None:
    made = rig.ask("POST", "/users/ann/jobs", {"name": "costly", "code": "x"}, token=rig.ann)
    assert made.status == 201
    path = "/users/ann/jobs/costly/cost"
    assert rig.ask("GET", path, token=rig.ann).json["currency"] == "EUR"
    assert rig.ask("GET", path, token=rig.blue).status == 403
    assert rig.ask("GET", "/users/ann/jobs/absent/cost", token=rig.ann).json["reason"] == "NotFound"


def test_a_spent_budget_tells_others_nothing(rig: ApiRig) -> None:
    """A refusal for a spent budget has amounts of money, so it comes after that of a team that is not one's own."""
    rig.job("ann", "spends", rig.ann, tenant="red", cpu=4)
    body = {"amount": "0.000001", "stop": True}
    assert rig.ask("PUT", RED, body, token=rig.root_user).status == 200

    def is_spent() -> bool:
        rig.run(rig.platform.budgets.review())
        return bool(rig.ask("GET", RED, token=rig.ann).json["stopped"])

    try:
        wait_for(is_spent, message="for the budget to be spent")
        job = {"name": "x", "code": "x", "cpu": 1, "ram": 100}
        refused = rig.ask("POST", "/users/ann/jobs", {**job, "tenant": "red"}, token=rig.ann)
        assert refused.json["reason"] == "BudgetSpent"
        assert "0.000001 EUR" in refused.json["msg"]
        asks: tuple[tuple[str, str, dict[str, Any] | None], ...] = (
            ("POST", "/users/blue/jobs", job),
            ("POST", "/users/blue/jobs:preview", job),
            ("GET", "/offer?cpu=1&ram=100&tenant=TEAM", None),
            ("POST", "/users/blue/sweeps:preview", {**job, "grid": {"lr": [0.1]}}),
            ("POST", "/users/blue/sweeps", {**job, "grid": {"lr": [0.1]}}),
            (
                "POST",
                "/users/blue/apps",
                {"name": "a", "model_name": "", "command": "x", "cpu": 1, "ram": 100},
            ),
        )
        for method, path, asked in asks:
            told = {}
            for tenant in ("red", "not-there"):
                sent = None if asked is None else {**asked, "tenant": tenant}
                to = path.replace("TEAM", tenant)
                answer = rig.ask(method, to, sent, token=rig.blue, headers=ONE_ID)
                assert (answer.status, answer.json["reason"]) == (403, "NotFound"), (path, answer.body)
                told[tenant] = answer.body.replace(tenant.encode(), b"TEAM")
            assert told["red"] == told["not-there"], path
            assert b"udget" not in told["red"], path
            assert b"EUR" not in told["red"], path
        for path in ("/tenants/red/queue", "/tenants/red/accounting", "/users/ann/jobs/spends/cost"):
            answer = rig.ask("GET", path, token=rig.blue)
            assert answer.status == 403, path
            assert b"EUR" not in answer.body
    finally:
        rig.ask("DELETE", RED, token=rig.root_user)
        rig.ask("PUT", "/users/ann/jobs/spends:cancel", token=rig.ann)

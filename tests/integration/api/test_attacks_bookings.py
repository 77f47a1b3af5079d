"""Booked windows over REST: who may book what, and what a member learns."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from support.rigs.api_rig import ApiRig

DAY = 86_400.0


def window(name: str = "night", start: float = DAY, end: float = 2 * DAY, **more: Any) -> dict[str, Any]:
    """Describe a window so many seconds from now."""
    now = time.time()
    times = [datetime.fromtimestamp(now + t, UTC).isoformat() for t in (start, end)]
    return {"name": name, "start": times[0], "end": times[1], "amount": {"cpu": 1}, **more}


def test_a_platform_admin_books_members_read_and_nobody_else_learns_of_it(rig: ApiRig) -> None:
    made = rig.ask("POST", "/tenants/red/bookings", window("secret-demo"), token=rig.root_user)
    assert made.status == 201, made.body
    for token in (rig.ann, rig.rita, rig.root_user):
        listed = rig.ask("GET", "/tenants/red/bookings", token=token)
        assert made.json in listed.json
    assert b"secret-demo" not in rig.ask("GET", "/tenants/red/bookings", token=rig.bob).body
    for token in (rig.ann, rig.rita, rig.bob, rig.blue, rig.notebook, rig.spawner):
        assert rig.ask("DELETE", "/tenants/red/bookings/secret-demo", token=token).status == 403
        assert rig.ask("POST", "/tenants/red/bookings", window("mine"), token=token).status == 403
    gone = rig.ask("DELETE", "/tenants/red/bookings/secret-demo", token=rig.root_user)
    assert (gone.status, gone.json) == (200, made.json)
    again = rig.ask("DELETE", "/tenants/red/bookings/secret-demo", token=rig.root_user)
    assert (again.status, again.json["reason"]) == (403, "NotFound")


def test_the_same_key_books_once(rig: ApiRig) -> None:
    headers, asked = {"Idempotency-Key": "k1"}, window("once")
    answers = [
        rig.ask("POST", "/tenants/red/bookings", asked, token=rig.root_user, headers=headers) for _ in "ab"
    ]
    assert [a.status for a in answers] == [201, 201]
    assert answers[0].json == answers[1].json
    assert rig.ask("DELETE", "/tenants/red/bookings/once", token=rig.root_user).status == 200


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"start": "tomorrow"}, "a time with its offset from UTC"),
        ({"start": "2030-01-01T08:00:00"}, "a time with its offset from UTC"),
        ({"start": 5}, "a time with its offset from UTC"),
        ({"start": "0001-01-01T00:00:00+23:59"}, "between 1970 and 9999"),
        ({"end": "9999-12-31T23:59:59-23:59"}, "between 1970 and 9999"),
        ({"name": "../x"}, "name is"),
        ({"name": "a\0b"}, "name is"),
        ({"amount": {"cpu": -1}}, "amount.cpu is -1"),
        ({"amount": {"cpu": 1e300}}, "must be a number from 0 to"),
        ({"amount": {"rom": 1}}, "storage"),
        ({"amount": {f"gpu:{'x' * 300}": 1}}, "which is not a resource"),
        ({"amount": {}}, "amount is empty"),
        ({"made_by": "ann"}, "field made_by does not exist"),
        ({"tenant": "blue"}, "field tenant does not exist"),
    ],
)
def test_an_invalid_window_is_refused_with_a_valid_form(
    rig: ApiRig, wrong: dict[str, Any], says: str
) -> None:
    answer = rig.ask("POST", "/tenants/red/bookings", {**window(), **wrong}, token=rig.root_user)
    assert answer.status == 403, answer.body
    assert says in answer.json["msg"], answer.json
    assert rig.ask("GET", "/tenants/red/bookings", token=rig.root_user).json == []


def test_an_amount_must_be_a_number(rig: ApiRig) -> None:
    for raw in ("NaN", "1e999", '"1"', "[1]"):
        sent = b'{"name":"n","start":"2030-01-01T00:00:00Z","end":"2030-01-02T00:00:00Z","amount":{"cpu":%s}}'
        answer = rig.ask("POST", "/tenants/red/bookings", raw=sent % raw.encode(), token=rig.root_user)
        assert (answer.status, answer.json["reason"]) == (403, "Invalid")


def test_members_learn_that_a_window_no_longer_fits_and_nothing_of_others(rig: ApiRig) -> None:
    rig.hub.user("wes", "wes-token")
    rig.tenant("windowed", members=("wes",), cpu=8)
    rig.tenant("greedy", cpu=60)
    asked = window("demo", amount={"cpu": 8})
    assert rig.ask("POST", "/tenants/windowed/bookings", asked, token=rig.root_user).status == 201
    lower = {"cpu": 60, "reserved": {"cpu": 58}}
    said = rig.ask("POST", "/tenants/greedy:preview", lower, token=rig.root_user).json
    assert [(b["tenant"], b["short"]["left"]) for b in said["bookings"]] == [("windowed", {"cpu": 6.0})]
    changed = rig.ask("PUT", "/tenants/greedy", lower, token=rig.root_user).json
    assert len(changed["notes"]) == 1
    assert "The window demo of windowed, " in changed["notes"][0]
    (seen,) = rig.ask("GET", "/tenants/windowed/bookings", token="wes-token").json
    assert seen["short"]["message"] == (
        "needs 8 cpu, but 6 is left: the nodes have 64 cpu, of which 58 is already reserved or booked"
    )
    assert "greedy" not in str(seen)
    assert rig.ask("GET", "/tenants/greedy", token=rig.root_user).json["notes"] == []
    gone = rig.ask("DELETE", "/tenants/greedy", token=rig.root_user).json
    assert gone["notes"][0].endswith("fits again")
    assert rig.ask("GET", "/tenants/windowed/bookings", token="wes-token").json[0]["short"] is None
    assert rig.ask("DELETE", "/tenants/windowed/bookings/demo", token=rig.root_user).status == 200

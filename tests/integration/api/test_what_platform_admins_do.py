"""What administrators do all day, over REST: an overview, nodes out of service, announcements, many people at once."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from mlp_hub.api.auth import scopes
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.service.support import limits
from mlp_language.message import msg
from support.rigs.api_rig import ApiRig, an_announcement
from support.waiting import wait_for


@pytest.fixture(autouse=True)
def _quiet(rig: ApiRig) -> Iterator[None]:
    """Let nothing be announced after a test."""
    yield
    rig.rig.ahead = 0.0
    for one in rig.ask("GET", "/announcements:all", token=rig.root_user).json:
        rig.ask("DELETE", f"/announcements/{one['id']}", token=rig.root_user)


def at(seconds: float) -> str:
    return datetime.fromtimestamp(time.time() + seconds, UTC).isoformat()


def shown(rig: ApiRig, token: str) -> list[str]:
    answer = rig.ask("GET", "/announcements", token=token)
    assert answer.status == 200, answer.body
    return [one["text"] for one in answer.json]


def comes_to_show(rig: ApiRig, token: str, texts: list[str]) -> None:
    """Wait until these are shown: a clock that jumps takes the lease away, and the hub stands by until it has it again."""

    def is_shown() -> bool:
        answer = rig.ask("GET", "/announcements", token=token)
        return answer.status == 200 and [one["text"] for one in answer.json] == texts

    wait_for(is_shown)


def announce(rig: ApiRig, token: str, path: str = "/announcements", **fields: Any) -> dict[str, Any]:
    answer = rig.ask("POST", path, an_announcement(**fields), token=token)
    assert answer.status == 201, answer.body
    told: dict[str, Any] = answer.json
    return told


def people(rig: ApiRig, csv: str, *, dry_run: bool, token: str | None = None) -> dict[str, Any]:
    answer = rig.ask("POST", "/users:import", {"csv": csv, "dry_run": dry_run}, token=token or rig.root_user)
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json
    return found


def states(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["name"], one["state"]) for one in found["people"]]


def test_the_overview_says_who_holds_what_what_waits_and_what_is_wrong(rig: ApiRig) -> None:
    rig.job("ann", "huge", rig.ann, cpu=64, tenant="red")
    rig.until("ann", "huge", "queued")
    rig.ask("PUT", "/nodes/n1:drain", {"reason": "a new kernel"}, token=rig.root_user)
    try:
        found = rig.ask("GET", "/overview", token=rig.root_user).json
    finally:
        rig.ask("PUT", "/nodes/n1:return", token=rig.root_user)
        rig.ask("PUT", "/users/ann/jobs/huge:cancel", {}, token=rig.ann)
    team = next(t for t in found["teams"] if t["name"] == "red")
    assert (team["cpu_inuse"], team["running"], team["waiting"]) == (1.0, 1, 1)
    assert (found["running"], found["waiting"], found["teams_all"]) == (1, 1, 3)
    assert sum(r["count"] for r in found["reasons"]) == 1
    assert [(j["user"], j["name"]) for j in found["longest"]] == [("ann", "huge")]
    assert (found["nodes"], found["nodes_up"], found["nodes_open"]) == (1, 1, 0)
    drained = {"kind": "Drained", "message": "a new kernel"}
    assert found["troubles"] == [{"name": "n1", "up": True, "conditions": [drained]}]
    assert found["problems"] == []


def test_a_node_is_drained_and_returned_and_a_wrong_one_is_named(rig: ApiRig) -> None:
    before = rig.ask("GET", "/nodes/n1/drain", token=rig.root_user).json
    assert before["drain"] is None
    assert [(s["kind"], s["user"], s["name"]) for s in before["stops"]] == [("job", "ann", "digits")]
    body = {"reason": "a new kernel", "evict": False}
    after = rig.ask("PUT", "/nodes/n1:drain", body, token=rig.root_user).json
    assert (after["drain"]["actor"], after["drain"]["reason"]) == ("admin", "a new kernel")
    assert rig.ask("GET", "/nodes", token=rig.root_user).json[0]["schedulable"] is False
    assert rig.ask("PUT", "/nodes/n1:return", token=rig.root_user).json["drain"] is None
    for method, path in (("GET", "/nodes/n9/drain"), ("PUT", "/nodes/n9:drain"), ("PUT", "/nodes/n9:return")):
        answer = rig.ask(
            method, path, body if "drain" in path and method == "PUT" else None, token=rig.root_user
        )
        assert (answer.status, answer.json["reason"], answer.json["msg"]) == (
            403,
            "NotFound",
            "node n9 does not exist",
        )
    never = rig.ask("GET", "/nodes/-x/drain", token=rig.root_user)  # no node is called so
    assert never.json["msg"] == "node -x does not exist"
    for reason in ("", "x" * 501, "two\nlines", "nul\0"):
        answer = rig.ask("PUT", "/nodes/n1:drain", {"reason": reason}, token=rig.root_user)
        assert (answer.status, answer.json["reason"]) == (403, "Invalid")


@pytest.mark.parametrize("who", ["ann", "rita", "notebook", "spawner"])
def test_nobody_else_drains_announces_to_all_or_imports(rig: ApiRig, who: str) -> None:
    token = getattr(rig, who)
    for method, path, body in (
        ("GET", "/overview", None),
        ("GET", "/nodes/n1/drain", None),
        ("PUT", "/nodes/n1:drain", {"reason": "mine"}),
        ("PUT", "/nodes/n1:return", None),
        ("GET", "/announcements:all", None),
        ("POST", "/announcements", an_announcement()),
        ("POST", "/users:import", {"csv": "eve,red,yes", "dry_run": False}),
    ):
        assert rig.ask(method, path, body, token=token).status == 403, path
    assert "eve" not in rig.hub.accounts
    assert rig.ask("GET", "/nodes", token=rig.root_user).json[0]["schedulable"] is True


def test_an_admin_who_may_only_look_changes_nothing(rig: ApiRig) -> None:

    held = (scopes.ACCESS, *(s for s in scopes.ADMIN_SCOPES if s != scopes.CLUSTER_WRITE))
    token = rig.hub.user("admin", "looks-only", admin=True, held=held)
    assert rig.ask("GET", "/overview", token=token).status == 200
    answer = rig.ask("PUT", "/nodes/n1:drain", {"reason": "mine"}, token=token)
    assert (answer.status, answer.json["reason"]) == (403, "Forbidden")


def test_announcements_are_shown_to_whom_they_are_for_and_while_they_last(rig: ApiRig) -> None:
    told = [
        announce(rig, rig.root_user, text="to all"),
        announce(rig, rig.rita, "/tenants/red/announcements", text="to red", level="critical"),
        announce(rig, rig.root_user, text="later", begin=at(600)),
    ]
    assert shown(rig, rig.ann) == ["to red", "to all"]
    assert shown(rig, rig.notebook) == ["to red", "to all"]
    assert shown(rig, rig.bob) == ["to all"]
    every = rig.ask("GET", "/announcements:all", token=rig.root_user).json
    assert [one["text"] for one in every] == ["later", "to red", "to all"]
    of_red = rig.ask("GET", "/tenants/red/announcements", token=rig.rita).json
    assert [(one["text"], one["made_by"]) for one in of_red] == [("to red", "rita")]
    rig.rig.ahead = 700.0
    comes_to_show(rig, rig.bob, ["later", "to all"])
    rig.rig.ahead = 4000.0
    comes_to_show(rig, rig.bob, [])
    rig.rig.ahead = 0.0
    rig.run(rig.platform.announcements.start())  # as after a restart
    comes_to_show(rig, rig.bob, ["to all"])
    for one in told:
        path = f"/tenants/red/announcements/{one['id']}" if one["tenant"] else f"/announcements/{one['id']}"
        assert rig.ask("DELETE", path, token=rig.root_user).status == 200
        assert rig.ask("DELETE", path, token=rig.root_user).json["reason"] == "NotFound"
    assert shown(rig, rig.ann) == []


def test_an_admin_of_a_tenant_tells_no_other_and_takes_back_nothing_of_others(rig: ApiRig) -> None:
    to_all = announce(rig, rig.root_user, text="to all")
    to_red = announce(rig, rig.rita, "/tenants/red/announcements", text="to red")
    assert rig.ask("POST", "/tenants/red/announcements", an_announcement(), token=rig.blue).status == 403
    assert rig.ask("POST", "/tenants/red/announcements", an_announcement(), token=rig.ann).status == 403
    for path, token in (
        (f"/tenants/blue/announcements/{to_red['id']}", rig.blue),
        (f"/tenants/red/announcements/{to_all['id']}", rig.rita),
        (f"/announcements/{to_red['id']}", rig.rita),
    ):
        assert rig.ask("DELETE", path, token=token).status == 403, path
    assert shown(rig, rig.ann) == ["to red", "to all"]
    for one in (to_all, to_red):  # a platform admin takes back any
        assert rig.ask("DELETE", f"/announcements/{one['id']}", token=rig.root_user).status == 200


def test_an_announcement_is_plain_text_whatever_is_in_it(rig: ApiRig) -> None:
    text = "<script>alert(1)</script> <b>&amp; \x85\u202ereversed"
    told = announce(rig, rig.root_user, text=text)
    assert told["text"] == "<script>alert(1)</script> <b>&amp; reversed"
    answer = rig.ask("GET", "/announcements", token=rig.ann)
    assert answer.headers["content-type"].startswith("application/json")
    assert "\u202e" not in answer.json[0]["text"]
    rig.ask("DELETE", f"/announcements/{told['id']}", token=rig.root_user)


@pytest.mark.parametrize(
    "wrong",
    [
        {"text": ""},
        {"text": "\u202e"},
        {"text": "x" * 501},
        {"text": "two\nlines"},
        {"text": "nul\0"},
        {"level": "shout"},
        {"until": at(-10)},
        {"until": "tomorrow"},
        {"until": "2031-01-01T00:00:00"},
        {"until": at(400 * 86400)},
        {"begin": at(7200)},
    ],
)
def test_a_wrong_announcement_is_refused(rig: ApiRig, wrong: dict[str, str]) -> None:
    answer = rig.ask("POST", "/announcements", an_announcement() | wrong, token=rig.root_user)
    assert (answer.status, answer.json["reason"]) == (403, "Invalid"), answer.body
    assert shown(rig, rig.ann) == []


def test_one_that_begins_before_all_time_begins_now_and_is_shown(rig: ApiRig) -> None:
    """No time is written that cannot be read again: that took the announcements away from all who are told of one, for ever."""
    told = announce(
        rig, rig.rita, "/tenants/red/announcements", text="old", begin="0001-01-01T00:00:00+14:00"
    )
    assert told["begin"] == told["made_at"]
    assert shown(rig, rig.ann) == ["old"]
    assert rig.ask("GET", "/announcements:all", token=rig.root_user).status == 200


def test_announcements_are_bounded(rig: ApiRig) -> None:
    made = [announce(rig, rig.rita, "/tenants/red/announcements") for _ in range(limits.ANNOUNCEMENTS)]
    answer = rig.ask("POST", "/tenants/red/announcements", an_announcement(), token=rig.rita)
    assert (answer.json["reason"], "remove one" in answer.json["msg"]) == ("Invalid", True)
    for one in made:
        rig.ask("DELETE", f"/tenants/red/announcements/{one['id']}", token=rig.rita)


def test_a_tenant_that_is_gone_takes_its_announcements_along(rig: ApiRig) -> None:
    rig.tenant("short")
    announce(rig, rig.root_user, "/tenants/short/announcements", text="to short")
    assert rig.ask("DELETE", "/tenants/short", token=rig.root_user).status == 200
    rig.hub.user("cleo", "cleo-token")
    rig.tenant("short", members=("cleo",))
    assert shown(rig, "cleo-token") == []
    rig.run(rig.platform.announcements.start())
    assert shown(rig, "cleo-token") == []


# --- people


def test_a_file_of_people_is_shown_first_then_made_and_made_once(rig: ApiRig) -> None:
    csv = (
        "name,team,platform_admin\nzoe,red,no\nMax , blue,\nann,blue,no\nbob,blue,\nivo,,yes\nlea,green,no\n"
    )
    first = people(rig, csv, dry_run=True)
    assert states(first) == [
        ("zoe", "new"),
        ("max", "new"),
        ("ann", "joins"),
        ("bob", "there"),
        ("ivo", "new"),
        ("lea", "refused"),
    ]
    assert (first["done"], first["refused"]) == (4, 1)
    assert first["people"][5]["note"] == "team green does not exist; make it first"
    assert "zoe" not in rig.hub.accounts
    done = people(rig, csv, dry_run=False)
    assert [s for _, s in states(done)] == ["made", "made", "joined", "there", "made", "refused"]
    passwords = [one["password"] for one in done["people"]]
    assert [p is not None for p in passwords] == [True, True, False, False, True, False]
    assert all(p.isalnum() and len(p) == 14 for p in passwords if p)
    assert rig.hub.accounts["zoe"]["authorized"]
    assert rig.hub.accounts["ivo"]["admin"]
    assert "zoe" in [m["user"] for m in rig.ask("GET", "/tenants/red/members", token=rig.root_user).json]
    again = people(rig, csv, dry_run=False)
    assert [s for _, s in states(again)] == ["there"] * 5 + ["refused"]
    audit = rig.ask("GET", "/audit?action=user.&limit=20", token=rig.root_user).json
    assert {("user.approve", "zoe"), ("user.admin", "ivo")} <= {(e["action"], e["object"]) for e in audit}
    rig.ask("DELETE", "/tenants/blue/members/ann", token=rig.root_user)


def test_a_new_account_inherits_nothing_from_a_namesake_wherever_its_creation_is_killed(rig: ApiRig) -> None:
    rig.run(rig.platform.tenants.set_member("blue", "rex"))
    made = rig.client.make_accounts

    async def dies(people: Mapping[str, str]) -> dict[str, Refused]:
        await made(people)
        return dict.fromkeys(people, Refused(Reason.WRONG_STATE, msg("killed")))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rig.client, "make_accounts", dies)
        assert states(people(rig, "rex,,yes", dry_run=False)) == [("rex", "refused")]
    assert rig.hub.accounts["rex"]["authorized"]
    assert not rig.hub.accounts["rex"].get("admin"), "of which no audit log would have told"
    members = rig.ask("GET", "/tenants/blue/members", token=rig.root_user).json
    assert "rex" not in [m["user"] for m in members]


def test_nobody_is_let_in_or_made_an_admin_by_the_way(rig: ApiRig) -> None:
    """Who signed up chose the password: a name in a file must not let them in. Nor does a line change a right."""
    rig.ask("POST", "/users", {"username": "mallory", "password": "a long password"})
    found = people(rig, "mallory,red,yes\nann,red,yes\n", dry_run=False)
    assert [s for _, s in states(found)] == ["refused", "refused"]
    assert not rig.hub.accounts["mallory"]["authorized"]
    assert not rig.hub.accounts["ann"].get("admin")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("=cmd|' /C calc'!A0,red,no", "cannot be a user name"),
        ("+1-555,red,no", "cannot be a user name"),
        ("@SUM(A1),red,no", "cannot be a user name"),
        ("root,red,no", "cannot be a user name"),
        ("../etc,red,no", "cannot be a user name"),
        ("\u212aim,red,no", "cannot be a user name"),
        ("<b>x</b>,red,no", "cannot be a user name"),
        (",red,no", "cannot be a user name"),
        ("eve,red,maybe", "platform_admin is 'maybe'; it must be yes or no"),
        ("eve,red,no,more", "cells"),
        ("eve,=1+1,no", "team =1+1 does not exist"),
    ],
)
def test_an_odd_line_is_refused_and_stops_no_other(rig: ApiRig, line: str, why: str) -> None:
    found = people(rig, f"{line}\numa,red,no\numa,blue,no\n", dry_run=True)
    assert [s for _, s in states(found)] == ["refused", "new", "refused"]
    assert why in found["people"][0]["note"]
    assert found["people"][2]["note"] == "line 2 already has uma"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the file names nobody"),
        ("\n\n", "the file names nobody"),
        ("name,team,admin\n", "the file names nobody"),
        ("a\0b,red,no", "NUL"),
        ('"open,red,no', "is not CSV"),
        ("name,shoe size\nann,43", "names the columns"),
        ("name,name\nann,bob", "names the columns"),
        ("name,admin,platform_admin\nann,no,yes", "names the columns"),
        ("\n".join(f"p{i},red,no" for i in range(1001)), "at most 1000 lines"),
    ],
)
def test_an_invalid_import_file_is_refused_whole(rig: ApiRig, text: str, why: str) -> None:
    answer = rig.ask("POST", "/users:import", {"csv": text}, token=rig.root_user)
    assert (answer.status, answer.json["reason"]) == (403, "Invalid")
    assert why in answer.json["msg"]


def test_ten_megabytes_other_encodings_and_too_many_at_once_are_refused(rig: ApiRig) -> None:
    big = json.dumps({"csv": "a,red,no\n" * 1_200_000}).encode()
    assert rig.ask("POST", "/users:import", raw=big, token=rig.root_user).status in (403, 413)
    latin = b'{"csv": "j\xf6rg,red,no"}'
    assert rig.ask("POST", "/users:import", raw=latin, token=rig.root_user).json["reason"] == "Invalid"
    many = {"csv": "\n".join(f"p{i},red,no" for i in range(51)), "dry_run": False}
    answer = rig.ask("POST", "/users:import", many, token=rig.root_user)
    assert (answer.json["reason"], "at most 50" in answer.json["msg"]) == ("Invalid", True)
    assert "p1" not in rig.hub.accounts


def test_the_same_import_again_by_its_key_has_the_same_passwords_also_while_the_first_is_at_work(
    rig: ApiRig,
) -> None:
    asked = {"csv": "\n".join(f"again{i},red,no" for i in range(50)), "dry_run": False}
    headers = {"Idempotency-Key": "import-1"}
    with ThreadPoolExecutor(2) as pool:
        asks = [
            pool.submit(rig.ask, "POST", "/users:import", asked, token=rig.root_user, headers=headers)
            for _ in range(2)
        ]
        first, second = (each.result().json for each in asks)
    third = rig.ask("POST", "/users:import", asked, token=rig.root_user, headers=headers).json
    assert first == second == third
    assert first["done"] == 50
    assert len({one["password"] for one in first["people"]}) == 50
    assert {one["state"] for one in first["people"]} == {"made"}
    assert sum(asked == "POST /hub/api/mlp/accounts:lot" for asked in rig.hub.requests) >= 1
    assert people(rig, "again1,red,no\n", dry_run=False)["people"][0]["state"] == "there"


def test_semicolons_tabs_and_a_byte_order_mark_are_read(rig: ApiRig) -> None:
    for text in ("\ufeffname;team;admin\r\numa;red;no\r\n", "uma\tred\tno", '\ufeff"uma","red","no"\r\n'):
        found = people(rig, text, dry_run=True)
        assert [(one["name"], one["team"], one["state"]) for one in found["people"]] == [
            ("uma", "red", "new")
        ]


# --- runs


def test_runs_of_everybody_are_searched_by_an_administrator_alone(rig: ApiRig) -> None:
    rig.job("bob", "theirs", rig.bob, cpu=0.1)
    rig.until("bob", "theirs", "running")

    def found(search: str) -> list[tuple[str, str]]:
        answer = rig.ask("GET", f"/runs?search={search}", token=rig.root_user)
        assert answer.status == 200, answer.body
        return [(one["user"], one["name"]) for one in answer.json["runs"]]

    assert {("ann", "digits"), ("bob", "theirs")} <= set(found(""))
    assert found("user=bob%20name=theirs") == [("bob", "theirs")]
    assert ("bob", "theirs") in found("tenant=blue%20state=running")
    rig.ask("PUT", "/users/bob/jobs/theirs:cancel", {}, token=rig.bob)
    rig.until("bob", "theirs", "cancelled")
    assert ("bob", "theirs") in found("state=error")
    assert b"theirs" in rig.ask("GET", "/runs:csv?search=user=bob", token=rig.root_user).body
    for token in (rig.bob, rig.rita, rig.blue, rig.notebook):
        for path in ("/runs", "/runs:csv"):
            assert rig.ask("GET", path, token=token).status == 403
    assert rig.ask("GET", "/runs?search=state=odd", token=rig.root_user).json["reason"] == "Invalid"

"""What each route does, through real sockets, on a real platform with simulated nodes."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from support.rigs.api_rig import ONE_ID, ApiRig, drain
from support.waiting import PATIENCE_S


def test_health_needs_no_token_and_tells_nothing_of_users(rig: ApiRig) -> None:
    answer = rig.ask("GET", "/health")
    assert (answer.status, answer.json) == (200, {"status": "ok", "version": "0", "problems": []})


def test_the_same_api_answers_at_the_root_alias(rig: ApiRig) -> None:
    below = rig.ask("GET", "/users/ann/jobs/digits", token=rig.ann)
    alias = rig.ask("GET", "/users/ann/jobs/digits", token=rig.ann, base="/api/v1")
    assert (alias.status, alias.json["uid"]) == (200, below.json["uid"])


def test_both_sockets_authenticate_alike(rig: ApiRig) -> None:
    for proxy in (True, False):
        assert rig.ask("GET", "/auth", token=rig.ann, proxy=proxy).json == "ann"
        assert rig.ask("GET", "/auth", proxy=proxy).status == 401


def test_a_session_tells_a_page_who_is_there(rig: ApiRig) -> None:
    _, headers = rig.session("rita", rig.rita)
    found = rig.ask("GET", "/session", headers=headers).json
    assert found == {
        "username": "rita",
        "admin": False,
        "tenants": ["red"],
        "tenant_admin": ["red"],
        "xsrf": headers["X-XSRFToken"],
        "version": "0",
        "keeping": {"job_days": None, "jobs": None, "job_mib": None},
        "warnings": [],
        "language": "",
        "images": False,
    }
    assert rig.ask("GET", "/session", token=rig.root_user).json["admin"] is True


def test_a_job_is_submitted_looked_at_and_cancelled(rig: ApiRig) -> None:
    job = rig.job("ann", "one", rig.ann)
    assert (job["user"], job["tenant"], job["workers"]) == ("ann", "red", 1)
    rig.until("ann", "one", "running")
    assert rig.ask("GET", "/users/ann/jobs/one/why", token=rig.ann).json["job"] == "one"
    kinds = [e["kind"] for e in rig.ask("GET", "/users/ann/jobs/one/events", token=rig.ann).json]
    assert kinds[0] == "submitted"
    assert rig.ask("PUT", "/users/ann/jobs/one:cancel", token=rig.ann).status == 200
    rig.until("ann", "one", "cancelled")
    again = rig.ask("PUT", "/users/ann/jobs/one:resubmit", {}, token=rig.ann).json
    assert (
        rig.ask("PUT", f"/users/ann/jobs/{again['name']}@{again['run']}:cancel", token=rig.ann).status == 200
    )
    assert (again["name"], again["run"]) == ("one", 2)
    assert rig.ask("DELETE", "/users/ann/jobs/one@1", token=rig.ann).status == 200


def test_a_preview_says_what_a_job_would_be_and_stores_nothing(rig: ApiRig) -> None:
    body = {"name": "tried", "code": "x", "workers": "1:2", "cpu": 1, "ram": 100}
    told = rig.ask("POST", "/users/ann/jobs:preview", body, token=rig.ann)
    assert told.status == 200, told.body
    size = {"runtime": "mpi", "ranks_min": 1, "ranks_max": 2}
    assert told.json | size | {"name": "tried", "run": 1} == told.json
    offer = told.json["offer"]
    assert (offer["tenant"], offer["ram"]) == ("red", 100 * (sum(offer["placement"].values()) or 1))
    assert rig.ask("GET", "/users/ann/jobs?name=tried", token=rig.ann).json == []
    rig.job("ann", "tried", rig.ann)
    rig.ask("PUT", "/users/ann/jobs/tried:cancel", token=rig.ann)
    again = rig.ask("POST", "/users/ann/jobs:preview", {**body, "replace": True}, token=rig.ann).json
    assert (again["name"], again["run"]) == ("tried", 2)
    rig.until("ann", "tried", "cancelled")
    assert rig.ask("GET", "/users/ann/jobs/tried@1", token=rig.ann).status == 200, (
        "a preview replaces nothing"
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "digits"},  # goes on
        {"cpu": 1000.0},  # can never start
        {"workers": "3:2"},
        {"runtime": "none-such"},
        {"tenant": "blue"},
        {"data": ["none-such"]},
        {"env_name": "none-such"},
        {"env": {"MLP_RANK": "1"}},
        {"code": None, "entry": "none-such.py"},
        {"workdir": "none-such"},
        {"nonsense": 1},
    ],
    ids=" ".join,
)
def test_a_preview_refuses_the_same_jobs_as_their_creation(rig: ApiRig, wrong: dict[str, Any]) -> None:
    body = {"name": "wrong", "code": "x", "cpu": 1, "ram": 100, **wrong}
    created = rig.ask("POST", "/users/ann/jobs", body, token=rig.ann, headers=ONE_ID)
    previewed = rig.ask("POST", "/users/ann/jobs:preview", body, token=rig.ann, headers=ONE_ID)
    assert created.status == 403
    assert (previewed.status, previewed.json) == (created.status, created.json)


def test_a_list_of_jobs_refuses_a_tenant_that_is_not_there_as_one_that_is_foreign(rig: ApiRig) -> None:
    for tenant in ("nope", "blue"):
        answer = rig.ask("GET", f"/users/ann/jobs?tenant={tenant}", token=rig.ann)
        assert (answer.status, answer.json["reason"]) == (403, "NotFound")
        assert answer.json["msg"] == f"team {tenant} does not exist here; yours: red"
    answer = rig.ask("GET", "/users/ann/jobs?tenant=nope", token=rig.root_user)
    assert answer.json["msg"] == "team nope does not exist here; teams of ann: red"
    assert rig.ask("GET", "/users/ann/jobs?tenant=red&state=error", token=rig.ann).status == 200
    answer = rig.ask("GET", "/users/ann/jobs?state=foo", token=rig.ann)
    assert (
        answer.json["msg"] == "state is 'foo'; it must be one of creating, deleting, error, finished, running"
    )


def test_workers_in_quotes_are_told_to_come_without(rig: ApiRig) -> None:
    body = {"name": "two", "code": "x", "workers": "2"}
    answer = rig.ask("POST", "/users/ann/jobs", body, token=rig.ann)
    assert (answer.status, answer.json["reason"]) == (403, "Invalid")
    assert (
        answer.json["msg"]
        == "workers is '2'; it must be a whole number such as 4 (in JSON without quotes), or MIN:MAX such as \"2:8\""
    )


def test_suspend_and_resume(rig: ApiRig) -> None:
    rig.job("ann", "two", rig.ann)
    rig.until("ann", "two", "running")
    assert rig.ask("PUT", "/users/ann/jobs/two:suspend", token=rig.ann).status == 200
    rig.until("ann", "two", "suspended")
    assert rig.ask("PUT", "/users/ann/jobs/two:resume", token=rig.ann).status == 200
    rig.until("ann", "two", "running")
    rig.ask("PUT", "/users/ann/jobs/two:cancel", token=rig.ann)


def test_a_repeated_submission_with_its_key_makes_one_job(rig: ApiRig) -> None:
    body = {"name": "once", "code": "x", "cpu": 1, "ram": 100}
    key = {"Idempotency-Key": "k-1"}
    first, second = (rig.ask("POST", "/users/ann/jobs", body, token=rig.ann, headers=key) for _ in range(2))
    assert (first.status, second.status, first.json["uid"]) == (201, 201, second.json["uid"])
    other = rig.ask("POST", "/users/ann/jobs", {**body, "cpu": 2}, token=rig.ann, headers=key)
    assert (other.status, other.json["reason"]) == (403, "Conflict")
    rig.ask("PUT", "/users/ann/jobs/once:cancel", token=rig.ann)
    rig.until("ann", "once", "cancelled")
    again = [
        rig.ask("PUT", "/users/ann/jobs/once:resubmit", {}, token=rig.ann, headers={"Idempotency-Key": "k-3"})
        for _ in range(2)
    ]
    assert [(a.status, a.json["run"]) for a in again] == [(200, 2), (200, 2)]
    rig.ask("PUT", "/users/ann/jobs/once:cancel", token=rig.ann)


def test_a_repeated_creation_of_a_tenant_with_its_key_makes_one_tenant(rig: ApiRig) -> None:
    key = {"Idempotency-Key": "k-2"}
    answers = [
        rig.ask("POST", "/tenants", {"name": "once"}, token=rig.root_user, headers=key) for _ in range(2)
    ]
    assert [a.status for a in answers] == [201, 201]
    assert rig.ask("POST", "/tenants", {"name": "once"}, token=rig.root_user).json["reason"] == "Conflict"


def test_lists_come_in_pages(rig: ApiRig) -> None:
    for n in range(3):
        rig.job("bob", f"page-{n}", rig.bob)
    names, path = [], "/users/bob/jobs?limit=2"
    while path:
        answer = rig.ask("GET", path, token=rig.bob)
        names += [j["name"] for j in answer.json]
        cursor = answer.headers.get("x-next-cursor")
        path = f"/users/bob/jobs?limit=2&cursor={cursor}" if cursor else ""
    assert sorted(names) == ["page-0", "page-1", "page-2"]


def test_metrics_are_taken_in_once_and_from_the_jobs_own_token(rig: ApiRig) -> None:
    job = rig.ask("GET", "/users/ann/jobs/digits", token=rig.ann).json
    token = rig.job_token(job["uid"])
    points = [{"n": n, "t": time.time(), "v": {"loss": 1 / n, "epoch": n}} for n in (1, 2, 3)]
    batch = {"source": "0.0.abc", "points": points}
    for _ in range(2):
        answer = rig.ask("POST", "/users/ann/job_metrics/digits", batch, token=token)
        assert (answer.status, answer.json) == (200, {"last": 3})
    beat = rig.ask(
        "PUT", "/users/ann/jobs/digits:heartbeat", {"state": "running", "progress": 30}, token=token
    )
    assert (beat.status, beat.json) == (200, "")
    with rig.socket("/users/ann/job_metrics/digits?since=1", token=rig.ann) as socket:
        frames = [json.loads(socket.recv(PATIENCE_S)) for _ in range(2)]
    assert [(f["seq"], f["epoch"], f["user"], f["name"]) for f in frames] == [
        (2, 2, "ann", "digits"),
        (3, 3, "ann", "digits"),
    ]
    assert rig.ask("PUT", "/users/ann/job_metrics/digits:begin", {}, token=rig.root_user).json == ""


def test_a_stream_replays_and_follows_a_job_to_its_end(rig: ApiRig) -> None:
    rig.job("ann", "short", rig.ann, env={"SIM_DURATION": "0.3"})
    with rig.socket("/users/ann/jobs/short:stream", token=rig.ann) as socket:
        frames, code = drain(socket)
    kinds = [f["type"] for f in frames]
    assert code == 1000
    assert "synced" in kinds
    assert kinds[-1] == "end"
    assert {"job", "events"} <= set(kinds)


def test_logs_are_text_json_and_followed(rig: ApiRig) -> None:
    rig.job("ann", "talks", rig.ann, env={"SIM_DURATION": "0.3"})
    followed = rig.ask("GET", "/users/ann/jobs/talks/logs?follow=1", token=rig.ann)
    assert followed.headers["content-type"].startswith("text/plain")
    assert followed.body.decode().splitlines() == ["simulated rank 0 runs on n1", "simulated rank 0 ended"]
    page = rig.ask(
        "GET", "/users/ann/jobs/talks/logs", token=rig.ann, headers={"Accept": "application/json"}
    ).json
    assert [line["text"] for line in page["lines"]] == followed.body.decode().splitlines()
    plain = rig.ask("GET", f"/users/ann/jobs/talks/logs?since={page['offset']}", token=rig.ann)
    assert (plain.body, plain.headers["x-log-offset"]) == (b"", str(page["offset"]))
    last = rig.ask("GET", "/users/ann/jobs/talks/logs?rank=0&tail=1", token=rig.ann)
    assert (last.body, last.headers["x-log-offset"]) == (b"simulated rank 0 ended\n", str(page["offset"]))
    late = rig.ask("GET", "/users/ann/jobs/talks/logs?tail=1&follow=1", token=rig.ann)
    assert late.body == b"simulated rank 0 ended\n"
    for wrong in ("0", "-1", "10001", "many"):
        refused = rig.ask("GET", f"/users/ann/jobs/talks/logs?tail={wrong}", token=rig.ann)
        assert (refused.status, refused.json["reason"]) == (403, "Invalid")
        assert "tail" in refused.json["msg"]
    with rig.socket("/users/ann/jobs/talks/logs:stream", token=rig.ann) as socket:
        assert json.loads(socket.recv(PATIENCE_S))["text"] == "simulated rank 0 runs on n1"


def test_the_queue_hints_at_changes(rig: ApiRig) -> None:
    with rig.socket("/queue:stream", token=rig.root_user) as socket:
        rig.job("ann", "hint", rig.ann, env={"SIM_DURATION": "0.1"})
        assert json.loads(socket.recv(PATIENCE_S)) == {"type": "changed"}
    assert any(e["name"] == "digits" for e in rig.ask("GET", "/queue", token=rig.root_user).json)
    assert [
        e["name"] for e in rig.ask("GET", "/tenants/blue/queue", token=rig.blue).json if e["user"] == "ann"
    ] == []


def test_tenants_members_quota_and_use(rig: ApiRig) -> None:
    rig.tenant("green", cpu=4)
    changed = rig.ask("PUT", "/tenants/green", {"cpu": 8, "weight": 2}, token=rig.root_user).json
    assert (changed["cpu"], changed["weight"]) == (8, 2)
    rig.hub.user("gil", "gil-token")
    assert rig.ask("PUT", "/tenants/green/members/gil", token=rig.root_user).json["role"] == "member"
    assert rig.ask("GET", "/tenants/green/members/gil", token=rig.root_user).json["user"] == "gil"
    rig.hub.user("nia", "nia-token")
    # whose work goes on counting for default a team's own admin is told, once
    for told in ("nia stays in default too", ""):
        answer = rig.ask("PUT", "/tenants/red/members/nia", {"role": "member"}, token=rig.rita)
        assert answer.json["note"].partition(":")[0] == told
    assert rig.ask("DELETE", "/tenants/red/members/nia", token=rig.rita).status == 200
    for told in ("nia is no longer in default", ""):
        rig.ask("DELETE", "/tenants/default/members/nia", token=rig.root_user)
        answer = rig.ask("PUT", "/tenants/red/members/nia", {"role": "member"}, token=rig.root_user)
        assert answer.json["note"].partition(",")[0] == told
    assert rig.ask("DELETE", "/tenants/red/members/nia", token=rig.root_user).status == 200
    assert rig.ask("DELETE", "/tenants/green/members/gil", token=rig.root_user).status == 200
    assert rig.ask("DELETE", "/tenants/green", token=rig.root_user).status == 200
    assert [u["tenant"]["name"] for u in rig.ask("GET", "/users/ann/quota", token=rig.ann).json] == ["red"]
    assert rig.ask("GET", "/tenants/red/usage", token=rig.ann).json["tenant"]["name"] == "red"
    assert [t["name"] for t in rig.ask("GET", "/tenants", token=rig.ann).json] == ["red"]
    assert {"red", "blue", "default"} <= {
        t["name"] for t in rig.ask("GET", "/tenants", token=rig.root_user).json
    }


def test_nodes_runtimes_and_offers(rig: ApiRig) -> None:
    assert [n["name"] for n in rig.ask("GET", "/nodes", token=rig.root_user).json] == ["n1"]
    assert {"mpi", "tf", "torch", "plain"} == {
        r["name"] for r in rig.ask("GET", "/runtimes", token=rig.ann).json
    }
    offer = rig.ask("GET", "/offer?workers=2&cpu=1.5&ram=200", token=rig.ann).json
    assert (offer["fits_now"], offer["cpu"]) == (True, 3.0)


def test_a_user_outside_default_gets_a_clear_refusal_and_learns_nothing_about_other_tenants(
    rig: ApiRig,
) -> None:
    job = {"name": "elsewhere", "code": "x", "tenant": "default"}
    for answer in (
        rig.ask("POST", "/users/ann/jobs", job, token=rig.ann),
        rig.ask("GET", "/users/ann/jobs?tenant=default", token=rig.ann),
        rig.ask("GET", "/tenants/default", token=rig.ann),
    ):
        assert (answer.status, answer.json["reason"]) == (403, "NotFound")
        assert "you are not a member of default" in answer.json["msg"]
    hidden = rig.ask("POST", "/users/ann/jobs", {**job, "tenant": "blue"}, token=rig.ann)
    assert hidden.json["msg"] == "you are not in a team blue; yours: red"


def test_the_spawner_learns_how_much_room_can_be_borrowed(rig: ApiRig) -> None:
    rig.hub.user("lea", "lea-token")
    rig.tenant("near", "lea", cpu=1, cohort="neighbours")
    rig.tenant("far", cpu=3, cohort="neighbours")
    room = rig.ask("GET", "/users/lea:spawn", token=rig.spawner).json["room"]
    nothing_back = {"cpu_borrow": 0.0, "ram_borrow": 0, "cpu_back": 0.0, "ram_back": 0, "back_from": []}
    network = {"network": None, "job_network": "none", "environments": []}
    near = {
        "cpu": 1.0,
        "cpu_free": 1.0,
        "ram": None,
        "ram_free": None,
        "gpu": None,
        "gpu_free": None,
        "gpu_kinds": [],
        **nothing_back,
        "cpu_borrow": 3.0,
    } | network
    assert room == {"near": near}


def test_the_spawner_is_told_what_may_be_taken_back_and_from_which_tenant(rig: ApiRig) -> None:
    for name, tenant in (("mia", "lender"), ("tom", "taker")):
        rig.hub.user(name, f"{name}-token")
        rig.tenant(tenant, name, cpu=2, cohort="givers")
    rig.job("tom", "hidden", "tom-token", cpu=4, tenant="taker")
    rig.until("tom", "hidden", "running")
    room = rig.ask("GET", "/users/mia:spawn", token=rig.spawner).json["room"]["lender"]
    assert (room["cpu"], room["cpu_free"]) == (2.0, 0.0)
    assert (room["cpu_back"], room["ram_back"], room["back_from"]) == (2.0, 0, ["taker"])
    assert rig.ask("GET", "/users/tom:spawn", token=rig.spawner).json["room"]["taker"]["back_from"] == []
    rig.ask("PUT", "/users/tom/jobs/hidden:cancel", token="tom-token")


def test_the_spawner_holds_and_gives_back_quota(rig: ApiRig) -> None:
    assert rig.ask("GET", "/users/ann:stopped", token=rig.spawner).json == {"why": "", "at_once": False}
    info = rig.ask("GET", "/users/ann:spawn", token=rig.spawner).json
    assert (info["tenants"], info["default_tenant"]) == (["red"], "red")
    assert set(info["room"]["red"]) == {
        *("cpu", "cpu_free", "ram", "ram_free", "gpu", "gpu_free", "gpu_kinds"),
        *("cpu_borrow", "ram_borrow", "cpu_back", "ram_back", "back_from"),
        *("network", "job_network", "environments"),
    }
    key = {"id": "ann-server", "applier": "sp"}
    asked = {**key, "request_type": "request", "tenant": "red", "cpu": 1, "ram": 100, "user": "ann"}
    for verb, body in (
        ("try", asked),
        ("try", asked),
        ("confirm", key),
        ("confirm", key),
        ("cancel", {**key, "id": "no"}),
    ):
        answer = rig.ask("PUT", f"/resource_request:{verb}", body, token=rig.spawner)
        assert (answer.status, answer.json) == (200, ""), answer.body


def test_a_person_signs_up_applies_for_a_tenant_and_is_let_in_by_its_admin(rig: ApiRig) -> None:
    body = {"username": "zoe", "password": "long enough", "tenant": "red"}
    made = rig.ask("POST", "/users", body)
    assert (made.status, made.json["state"]) == (201, "NotActive")
    assert rig.ask("POST", "/users", body).json["reason"] == "Conflict"
    assert rig.ask("POST", "/users", {**body, "username": "yan", "password": "x"}).json["reason"] == "Invalid"
    refused = rig.ask("PUT", "/users/zoe:approve", token=rig.blue)
    assert (refused.json["msg"], refused.json["reason"]) == ("user zoe does not exist", "NotFound")
    assert rig.ask("PUT", "/users/zoe:approve", token=rig.ann).status == 403
    let_in = rig.ask("PUT", "/users/zoe:approve", token=rig.rita)
    assert (let_in.status, let_in.json["state"], let_in.json["tenants"]) == (200, "Actived", ["red"])
    waiting = rig.ask("GET", "/users?state=NotActive", token=rig.root_user).json
    assert "zoe" not in [u["username"] for u in waiting]
    out = rig.ask("PUT", "/users/zoe", token=rig.root_user)
    assert (out.status, out.json["state"]) == (200, "NotActive")


def test_an_approver_can_refuse_a_sign_up_and_its_name_is_free_again(rig: ApiRig) -> None:
    body = {"username": "zed", "password": "long enough", "tenant": "red"}
    rig.ask("POST", "/users", body)
    shown = rig.ask("GET", "/users?state=NotActive", token=rig.root_user).json
    assert [(u["new"], u["applied_for"]) for u in shown if u["username"] == "zed"] == [(True, "red")]
    for who in (rig.blue, rig.ann):
        refused = rig.ask("DELETE", "/users/zed", token=who)
        assert (refused.status, refused.json["reason"]) == (403, "NotFound")
    gone = rig.ask("DELETE", "/users/zed", token=rig.rita)
    assert (gone.status, gone.json["username"]) == (200, "zed")
    assert rig.ask("GET", "/users/zed", token=rig.root_user).json["reason"] == "NotFound"
    # somebody of that name signs up again: the old application is forgotten
    assert rig.ask("POST", "/users", {**body, "tenant": None}).status == 201
    assert rig.ask("PUT", "/users/zed:approve", token=rig.rita).json["reason"] == "NotFound"


def test_a_user_who_was_ever_admitted_cannot_be_refused_away(rig: ApiRig) -> None:
    for state in ("Actived", "NotActive"):
        answer = rig.ask("DELETE", "/users/ann", token=rig.root_user)
        assert (answer.status, answer.json["reason"]) == (403, "WrongState"), state
        rig.ask("PUT", "/users/ann", token=rig.root_user)
    assert rig.ask("GET", "/users/ann", token=rig.root_user).json["new"] is False


def test_a_name_that_nobody_has_joins_no_tenant(rig: ApiRig) -> None:
    def put(token: str) -> tuple[int, str]:
        answer = rig.ask("PUT", "/tenants/red/members/zac", {"role": "member"}, token=token)
        return answer.status, answer.json.get("msg", "")

    for state in ("nobody", "somebody who waits"):
        for who in (rig.root_user, rig.rita):
            status, text = put(who)
            assert (status, "zac is not a" in text) == (403, True), state
        rig.ask("POST", "/users", {"username": "zac", "password": "long enough"})
    assert rig.ask("PUT", "/users/zac:approve", token=rig.root_user).status == 200
    assert put(rig.root_user)[0] == 200


def test_a_new_token_holds_no_more_than_the_one_that_asked(rig: ApiRig) -> None:
    held = ("access:services!service=mlp", "custom:mlp:users:write", "custom:mlp:jobs:read")
    small = rig.hub.user("ann", "small-token", held=held)
    assert rig.ask("GET", "/users/ann/token", token=small).status == 200
    assert set(rig.hub.minted[-1]["scopes"]) == set(held)
    # an admin cannot become somebody else, a notebook's token makes no other
    assert rig.ask("GET", "/users/ann/token", token=rig.root_user).json["reason"] == "Forbidden"
    assert rig.ask("GET", "/users/ann/token", token=rig.notebook).json["reason"] == "Forbidden"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"name": "-Foo"}, "name is '-Foo'; it must be letters, digits, -, _ and ., beginning with a letter"),
        ({"name": "a\n"}, "name is"),
        ({"name": "a", "foo": 1}, "field foo does not exist; known here: runtime, workers"),
        ({"code": "x"}, "name is missing; it is required"),
        ({"name": "a", "cpu": 0.01}, "cpu is 0.01; it must be at least 0.1"),
        (
            {"name": "a", "ram": "much"},
            "ram is 'much'; it must be a whole number of MiB such as 1024 (in JSON without quotes), or auto",
        ),
        ({"name": "a", "args": ["x", 1]}, "args[1] is 1; it must be a text"),
        ({"name": "a", "priority": ["high"]}, 'priority is ["high"]; it must be a text'),
        ({"name": "a", "cpu": {"of": None}}, 'cpu is {"of": null}; it must be a number'),
        ({"name": "a", "ram": True}, "ram is true; it must be a whole number"),
        ({"name": "a", "code": ["x" * 99]}, 'code is ["' + "x" * 58 + "...; it must be a text"),
        ({"name": "a", "code": [[["x"]]] * 99}, 'code is [[["x"]], [["x"]], '),
        ([1, "x"], 'the body is [1, "x"]; it must be an object'),
        ({"name": "a", "env": {"1A": "x"}}, "a key of env is wrong"),
        (
            {"name": "a", "workers": "many"},
            "workers is 'many'; it must be a whole number such as 4 (in JSON without quotes), or MIN:MAX",
        ),
    ],
)
def test_a_wrong_field_is_named_with_its_value_and_what_would_be_right(
    rig: ApiRig, body: Any, says: str
) -> None:
    answer = rig.ask("POST", "/users/ann/jobs", body, token=rig.ann)
    assert (answer.status, answer.json["reason"]) == (403, "Invalid")
    assert says in answer.json["msg"]


def test_changes_on_the_hub_side_are_seen_within_seconds(rig: ApiRig) -> None:
    groups = rig.hub.tokens["bob-token"]["groups"]
    token = rig.hub.user("carl", "carl-token")
    rig.hub.tokens[token]["groups"] = ["blue"]
    assert rig.ask("GET", "/session", token=token).json["tenants"] == ["blue"]
    assert groups == []

"""Who may say with whom a tenant shares, and what tenants that share learn of each other's people."""

from __future__ import annotations

from typing import Any

import pytest

from support.rigs.api_rig import ApiRig

SHARING: list[dict[str, Any]] = [
    {"cohort": "main"},
    {"parent": "default"},
    {"cpu": 4, "cohort": "main", "borrowing_limit": {"cpu": 100}},
    {"cpu": 4, "cohort": "main", "lending_limit": {"cpu": 0}},
    {"cpu": 4, "reserved": {"cpu": 4}},
]
SECRETS = ("mallory", "hidden")


def red(rig: ApiRig) -> dict[str, Any]:
    """Return the tenant as it was set up: what its files take is measured beside the test."""
    found: dict[str, Any] = rig.ask("GET", "/tenants/red", token=rig.root_user).json
    return {field: value for field, value in found.items() if field != "rom_inuse"}


@pytest.mark.parametrize("body", SHARING, ids=str)
@pytest.mark.parametrize("who", ["rita", "ann", "bob", "blue"])
def test_only_a_platform_admin_says_with_whom_a_tenant_shares_or_asks_what_it_would_mean(
    rig: ApiRig, who: str, body: dict[str, Any]
) -> None:
    before = red(rig)
    for method, path in (
        ("PUT", "/tenants/red"),
        ("POST", "/tenants/red:preview"),
        ("POST", "/tenants"),
    ):
        sent = body if path != "/tenants" else {"name": "mine", **body}
        answer = rig.ask(method, path, sent, token=f"{who}-token")
        assert answer.status == 403, (method, path)
        assert answer.json["reason"] in ("Forbidden", "NotFound")
    assert red(rig) == before
    assert rig.ask("GET", "/tenants/mine", token=rig.root_user).status == 403
    assert rig.ask("POST", "/tenants/red:preview", body, token=rig.root_user).status == 200


def test_invalid_amounts_are_refused_on_every_route(rig: ApiRig) -> None:
    for field in ("borrowing_limit", "lending_limit", "reserved"):
        for raw in ('{"cpu": -1}', '{"cpu": 1e999}', '{"ram": 0.5}', '{"disk": 1}', '{"cpu": "1"}', "[1]"):
            sent = f'{{"cpu": 4, "ram": 4096, "cohort": "main", "{field}": {raw}}}'.encode()
            for method, path in (("PUT", "/tenants/red"), ("POST", "/tenants/red:preview")):
                answer = rig.ask(method, path, raw=sent, token=rig.root_user)
                assert (answer.status, answer.json["reason"]) == (403, "Invalid"), (field, raw)


@pytest.mark.parametrize(
    ("grade", "root", "why"),
    [
        ("encrypted", "/srv/red", "data_root /srv/red has no meaning with isolation encrypted"),
        ("dedicated", "", "isolation dedicated needs data_root"),
        ("dedicated", "srv/red", "give an absolute path without .."),
        ("dedicated", "/srv/../etc", "give an absolute path without .."),
        ("dedicated", "/srv/r\0ed", "give an absolute path without .."),
        ("dedicated", "/etc", "it is not empty"),
        ("dedicated", "/proc/self/root/srv", "is a link or not a directory"),
    ],
)
def test_a_grade_of_isolation_that_cannot_be_had_is_refused_on_every_way_in_and_never_shown(
    rig: ApiRig, grade: str, root: str, why: str
) -> None:
    before = rig.ask("GET", "/tenants/red", token=rig.root_user).json
    assert before["isolation"] == "shared"
    for method, path in (
        ("POST", "/tenants"),
        ("PUT", "/tenants/red"),
        ("POST", "/tenants/red:preview"),
    ):
        sent = {"isolation": grade, "data_root": root, "cpu": 1} | (
            {"name": "novel"} if path == "/tenants" else {}
        )
        answer = rig.ask(method, path, sent, token=rig.root_user)
        assert (answer.status, answer.json["reason"]) == (403, "Invalid"), (method, path)
        assert why in answer.json["msg"]
    now = rig.ask("GET", "/tenants/red", token=rig.root_user).json
    assert now | {"rom_inuse": 0} == before | {"rom_inuse": 0}, "others may write meanwhile"
    assert rig.ask("GET", "/tenants/novel", token=rig.root_user).status == 403
    for bad in ('"strict"', "null", "1", '["shared"]'):
        answer = rig.ask("PUT", "/tenants/red", raw=f'{{"isolation": {bad}}}'.encode(), token=rig.root_user)
        assert (answer.status, answer.json["reason"]) == (403, "Invalid"), bad
    assert rig.ask("PUT", "/tenants/red", {"isolation": "shared"}, token="rita-token").status == 403


@pytest.mark.parametrize("kind", ["", "a\nb", "a\0b", "\N{RIGHT-TO-LEFT OVERRIDE}a", "\x1b[31m", "x" * 65])
def test_invalid_gpu_kinds_get_no_quota(rig: ApiRig, kind: str) -> None:
    for body in ({"gpu_kinds": {kind: 1}}, {"gpu": 4, "reserved": {f"gpu:{kind}": 1}}):
        for method, path in (("PUT", "/tenants/red"), ("POST", "/tenants/red:preview")):
            answer = rig.ask(method, path, {"cpu": 4, "ram": 4096, **body}, token=rig.root_user)
            assert (answer.status, answer.json["reason"]) == (403, "Invalid"), body
            assert len(answer.body) < 500


def test_tenants_that_share_learn_of_each_other_but_not_of_each_others_people_and_jobs(rig: ApiRig) -> None:
    mallory = rig.hub.user("mallory", "mallory-token")
    rig.tenant("lender", "mallory", cpu=4, cohort="pool")
    rig.tenant("taker", "bob", cpu=2, cohort="pool")
    rig.job("mallory", "hidden", mallory, cpu=5, tenant="lender")  # borrows 1 of taker's 2
    rig.until("mallory", "hidden", "running")
    rig.job("bob", "own", rig.bob, cpu=1, tenant="taker")
    rig.until("bob", "own", "running")
    rig.job("bob", "more", rig.bob, cpu=3, tenant="taker")
    rig.until("bob", "more", "queued")

    refused = rig.ask(
        "PUT",
        "/resource_request:try",
        {"id": "n", "applier": "sp", "request_type": "request", "tenant": "taker", "cpu": 2, "user": "bob"},
        token=rig.spawner,
    )
    assert refused.json["reason"] == "WaitingForQuota"
    (lent,) = [f for f in refused.json["facts"] if f["key"] == "lent"]
    assert (lent["number"], lent["who"]) == (1, "lender")
    seen = [refused.body]
    for path in (
        "/tenants",
        "/tenants/taker",
        "/tenants/taker/usage",
        "/tenants/taker/queue",
        "/users/bob/quota",
        "/users/bob/jobs/more",
        "/users/bob/jobs/more/why",
        "/users/bob/jobs/more/events",
        "/offer?cpu=1&tenant=taker",
    ):
        answer = rig.ask("GET", path, token=rig.bob)
        assert answer.status == 200, (path, answer.body)
        seen.append(answer.body)
    for body in seen:
        for secret in SECRETS:
            assert secret.encode() not in body, body
    assert rig.ask("GET", "/tenants/lender", token=rig.bob).json["reason"] == "NotFound"


def test_the_owner_of_a_job_stopped_for_another_tenant_does_not_learn_for_whose_job(rig: ApiRig) -> None:
    mallory = rig.hub.user("mallory", "mallory-token")
    rig.tenant("patron", "mallory", cpu=3, cohort="pair")
    rig.tenant("guest", "bob", cpu=1, cohort="pair")
    rig.job("bob", "lent", rig.bob, cpu=4, tenant="guest")
    rig.until("bob", "lent", "running")
    rig.job("mallory", "hidden-too", mallory, cpu=2, tenant="patron")
    rig.until("bob", "lent", "queued")
    rig.until("mallory", "hidden-too", "running")
    for path in ("", "/why", "/events"):
        answer = rig.ask("GET", f"/users/bob/jobs/lent{path}", token=rig.bob)
        assert answer.status == 200
        assert not [s for s in SECRETS if s.encode() in answer.body], answer.body
    events = rig.ask("GET", "/users/bob/jobs/lent/events", token=rig.bob).json
    stopped = next(e["message"] for e in events if e["kind"] == "preempted")
    assert stopped.startswith("Stopped for a job of team patron: patron takes back what guest borrowed.")
    waits = rig.ask("GET", "/users/mallory/jobs/hidden-too/events", token=mallory).json
    assert not [e for e in waits if "job lent" in e["message"] or "bob" in e["message"]]

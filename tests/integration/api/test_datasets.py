"""Datasets by REST: their life, what they take of the quota, and that they are gone whole when they are deleted."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.rigs.api_rig import Answer, ApiRig
from support.waiting import wait_for

MIB = 2**20
_numbers = itertools.count()


@pytest.fixture
def team(rig: ApiRig) -> Iterator[str]:
    """A tenant of ann's with 100 MiB of storage."""
    name = f"team{next(_numbers)}"
    rig.tenant(name, "rita", members=("ann",), rom=100 * MIB)
    yield name
    for each in rig.ask("GET", f"/users/ann/datasets?tenant={name}", token=rig.ann).json:
        beat(rig, each["name"], "error")
        rig.ask("DELETE", f"/users/ann/datasets/{each['name']}", token=rig.ann)


def make(rig: ApiRig, name: str, tenant: str, size: int = MIB, **fields: Any) -> Answer:
    body = {"name": name, "size": size, "tenant": tenant, **fields}
    return rig.ask("POST", "/users/ann/datasets", body, token=rig.ann)


def beat(rig: ApiRig, name: str, state: str, progress: int = 0) -> Answer:
    body = {"state": state, "progress": progress}
    return rig.ask("PUT", f"/users/ann/datasets/{name}:heartbeat", body, token=rig.ann)


def show(rig: ApiRig, name: str) -> dict[str, Any]:
    found: dict[str, Any] = rig.ask("GET", f"/users/ann/datasets/{name}", token=rig.ann).json
    return found


def in_use(rig: ApiRig, tenant: str) -> int:
    found: int = rig.ask("GET", f"/tenants/{tenant}", token=rig.root_user).json["rom_inuse"]
    return found


def files(rig: ApiRig, name: str) -> Path:
    return rig.root / "datasets" / "ann" / name


def put(rig: ApiRig, name: str, file: str, size: int) -> None:
    path = files(rig, name) / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)


def delete(rig: ApiRig, name: str) -> Answer:
    return rig.ask("DELETE", f"/users/ann/datasets/{name}", token=rig.ann)


def gone(rig: ApiRig, name: str) -> None:
    wait_for(lambda: show(rig, name).get("reason") == "NotFound", message=f"for {name} to be gone")


def test_the_life_of_a_dataset_and_what_it_takes(rig: ApiRig, team: str) -> None:
    made = make(rig, "pets.train", team, 10 * MIB)
    assert made.status == 201
    fields = {k: v for k, v in made.json.items() if k != "made_at"}
    assert fields == {
        "name": "pets.train",
        "user": "ann",
        "tenant": team,
        "size": 10 * MIB,
        "state": "creating",
        "progress": 0,
        "used": 0,
        "path": "/data/ann/pets.train/",
        "message": "",
        "source": None,
    }
    assert in_use(rig, team) == 10 * MIB
    put(rig, "pets.train", "a/b/one", 1000)
    put(rig, "pets.train", "two", 24)
    assert beat(rig, "pets.train", "creating", 40).status == 200
    assert show(rig, "pets.train")["progress"] == 40
    assert beat(rig, "pets.train", "ready").json == ""
    wait_for(lambda: show(rig, "pets.train")["size"] == 1024, message="for the exact size")
    found = show(rig, "pets.train")
    assert (found["state"], found["progress"], found["used"]) == ("ready", 100, 1024)
    assert in_use(rig, team) == 1024
    assert [d["name"] for d in rig.ask("GET", "/users/ann/datasets?state=ready", token=rig.ann).json] == [
        "pets.train"
    ]
    assert delete(rig, "pets.train").json["state"] == "deleting"
    gone(rig, "pets.train")
    assert in_use(rig, team) == 0
    assert not files(rig, "pets.train").exists()


def test_only_a_dataset_that_is_ready_or_in_error_is_deleted(rig: ApiRig, team: str) -> None:
    make(rig, "early", team)
    refused = delete(rig, "early")
    assert (refused.status, refused.json["reason"]) == (403, "WrongState")
    assert "is being created" in refused.json["msg"]
    assert beat(rig, "early", "error", 3).status == 200
    assert delete(rig, "early").status == 200
    gone(rig, "early")


def test_an_upload_that_failed_may_be_gone_on_with(rig: ApiRig, team: str) -> None:
    make(rig, "again", team)
    for state in ("error", "creating", "ready", "creating", "error"):
        assert beat(rig, "again", state).status == 200
    make(rig, "straight", team)
    beat(rig, "straight", "ready")
    refused = beat(rig, "straight", "error")
    assert (refused.status, refused.json["reason"]) == (403, "WrongState")


def test_a_dataset_beyond_the_quota_is_refused_with_the_holders_of_the_quota(rig: ApiRig, team: str) -> None:
    assert make(rig, "first", team, 60 * MIB).status == 201
    refused = make(rig, "second", team, 60 * MIB)
    assert (refused.status, refused.json["reason"]) == (403, "WaitingForQuota")
    assert "dataset first of ann" in refused.json["msg"]
    assert make(rig, "third", team, 101 * MIB).json["reason"] == "ExceedsMaxQuota"
    assert make(rig, "first", team).json["reason"] == "Conflict"
    assert in_use(rig, team) == 60 * MIB


@pytest.mark.parametrize(
    "name",
    ["", "..", ".", "a/b", "../x", "A", "a b", "a\0", "-a", "x" * 51, "x" * 10_000, "a\n", "%2e%2e", "ä", 7],
)
def test_a_name_that_no_directory_should_have_is_refused(rig: ApiRig, team: str, name: Any) -> None:
    refused = make(rig, name, team)
    assert (refused.status, refused.json["reason"]) == (403, "Invalid")


@pytest.mark.parametrize("size", [-1, 2**61, 1.5, "7", None, True])
def test_a_size_that_is_none_is_refused(rig: ApiRig, team: str, size: Any) -> None:
    refused = rig.ask(
        "POST", "/users/ann/datasets", {"name": "odd", "size": size, "tenant": team}, token=rig.ann
    )
    assert (refused.status, refused.json["reason"]) == (403, "Invalid")


def test_a_dataset_is_nobody_elses(rig: ApiRig, team: str) -> None:
    make(rig, "mine", team)
    for token in (rig.bob, rig.blue):
        for method, path in (("GET", ""), ("DELETE", ""), ("GET", ":read"), ("PUT", ":write")):
            refused = rig.ask(method, f"/users/ann/datasets/mine{path}", token=token)
            assert (refused.status, refused.json["msg"]) == (403, "dataset mine does not exist")
    assert rig.ask("GET", "/users/ann/datasets/mine:read", token=rig.rita).status == 200
    assert rig.ask("PUT", "/users/ann/datasets/mine:write", token=rig.rita).status == 403
    not_in = rig.ask("POST", "/users/bob/datasets", {"name": "x", "size": 1, "tenant": team}, token=rig.bob)
    assert (not_in.status, not_in.json["reason"]) == (403, "NotFound")


def test_each_page_of_a_list_continues_where_the_last_one_ended(rig: ApiRig, team: str) -> None:
    for name in ("p.a", "p.b", "p.c"):
        make(rig, name, team, 1)
    first = rig.ask("GET", f"/users/ann/datasets?tenant={team}&limit=2", token=rig.ann)
    assert [d["name"] for d in first.json] == ["p.a", "p.b"]
    cursor = first.headers["x-next-cursor"]
    second = rig.ask("GET", f"/users/ann/datasets?tenant={team}&limit=2&cursor={cursor}", token=rig.ann)
    assert [d["name"] for d in second.json] == ["p.c"]
    assert "x-next-cursor" not in second.headers


def test_written_data_is_charged_step_by_step(rig: ApiRig, team: str) -> None:
    make(rig, "steps", team, 10)
    uid = rig.ask("PUT", "/users/ann/datasets/steps:write", token=rig.ann).json["uid"]

    def say(verb: str, **body: Any) -> Answer:
        return rig.ask("PUT", f"/stored:{verb}", {"uid": uid, **body}, token=rig.data)

    assert say("take", size=MIB).status == 200
    assert in_use(rig, team) == MIB
    full = say("take", size=100 * MIB)
    assert (full.status, full.json["reason"]) == (403, "WaitingForQuota")
    put(rig, "steps", "one", 300)
    assert say("give", granted=MIB, grown=300).status == 200
    assert (in_use(rig, team), show(rig, "steps")["used"]) == (300, 300)
    say("take", size=5 * MIB)
    put(rig, "steps", "two", 500)
    assert rig.ask("PUT", "/stored:begun", token=rig.data).status == 200
    wait_for(
        lambda: (in_use(rig, team), show(rig, "steps")["used"]) == (800, 800),
        message="for a look at the files",
    )
    for token in (rig.ann, rig.rita):
        assert rig.ask("PUT", "/stored:take", {"uid": uid, "size": 1}, token=token).status == 403


def test_a_request_that_is_repeated_makes_one_dataset(rig: ApiRig, team: str) -> None:
    body = {"name": "once", "size": 1, "tenant": team}
    for _ in range(2):
        answer = rig.ask("POST", "/users/ann/datasets", body, token=rig.ann, headers={"Idempotency-Key": "k"})
        assert answer.status == 201


def test_the_audit_log_names_who_made_it_not_whose_it_is(rig: ApiRig, team: str) -> None:
    made = rig.ask("POST", "/users/ann/datasets", {"name": "by-root", "size": 0}, token=rig.root_user)
    assert made.status == 201, made.json
    (entry,) = rig.ask("GET", "/audit?object=by-root", token=rig.root_user).json
    assert (entry["actor"], entry["action"]) == ("admin", "dataset.create")

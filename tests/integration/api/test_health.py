"""What `/health` says, to whom, and what asking costs."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus

from mlp_hub.service.health.problems import Problem
from mlp_language.message import verbatim
from support.rigs.api_rig import ApiRig, drain
from support.waiting import PATIENCE_S


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[ApiRig]:
    with ApiRig(tmp_path) as started:
        yield started


def add(rig: ApiRig, problem: Problem) -> None:
    async def source() -> list[Problem]:
        return [problem]

    rig.platform.problems.add(source)


def test_a_platform_that_works_is_ok(rig: ApiRig) -> None:
    answer = rig.ask("GET", "/health")
    assert (answer.status, answer.json) == (200, {"status": "ok", "version": "0", "problems": []})


def test_a_hub_that_is_away_makes_it_fail_until_it_is_back(rig: ApiRig) -> None:
    rig.hub.down = True
    rig.client._heard -= 60
    answer = rig.ask("GET", "/health")
    assert (answer.status, answer.json["status"]) == (
        200,
        "failing",
    )  # it lives: starting it again would mend nothing
    assert rig.ask("GET", "/ready").status == 200
    assert [(p["component"], p["reason"]) for p in answer.json["problems"]] == [("hub", "HubUnavailable")]
    rig.hub.down = False
    assert rig.ask("GET", "/health").json["status"] == "ok"


def test_many_who_ask_are_one_question_to_the_hub(rig: ApiRig) -> None:
    async def many() -> None:
        await asyncio.gather(*(rig.platform.problems.now() for _ in range(200)))

    rig.client._heard -= 60
    before = rig.hub.requests.count("GET /hub/api/")
    rig.run(many())
    rig.run(many())
    assert rig.hub.requests.count("GET /hub/api/") == before + 1


def test_a_problem_beside_which_requests_are_served_is_told_with_200(rig: ApiRig) -> None:
    add(rig, Problem("disk", "DiskLow", verbatim("little room is left"), fails=False))
    answer = rig.ask("GET", "/health")
    assert (answer.status, answer.json["status"]) == (200, "degraded")
    assert answer.json["problems"] == [
        {"component": "disk", "reason": "DiskLow", "message": "little room is left"}
    ]


def test_a_database_that_takes_no_writes_is_told_and_no_detail_of_it(rig: ApiRig) -> None:
    assert rig.platform.db._writer is not None
    rig.platform.db._writer.trouble = "/root/secret/mlp.sqlite: database or disk is full"
    answer = rig.ask("GET", "/health")
    assert answer.json["status"] == "failing"
    (problem,) = answer.json["problems"]
    assert (problem["component"], problem["reason"]) == ("database", "DatabaseUnavailable")
    assert b"secret" not in answer.body


def test_one_that_stands_by_lives_says_who_leads_and_refuses_all_else(rig: ApiRig) -> None:
    holder = rig.platform.lease.holder
    assert rig.ask("GET", "/ready").json == {
        "ready": True,
        "replica": holder.rpartition("/")[2],
        "leader": holder.rpartition("/")[2],
        "msg": "",
    }
    _, browser = rig.session("ann", rig.ann)
    rig.platform._leads = False
    rig.platform.lease._held = False
    rig.platform.lease.waits_for = "secret-host.example/4711/abcdef01"
    try:
        assert rig.ask("GET", "/health").json["status"] == "ok"
        answer = rig.ask("GET", "/ready", token=rig.root_user)
        assert (answer.status, answer.headers["retry-after"]) == (503, "2")
        assert (answer.json["ready"], answer.json["leader"]) == (False, "abcdef01")
        for proxy in (True, False):
            for method, path, sent in (
                ("GET", "/auth", {"token": rig.ann}),
                ("GET", "/auth", {}),
                ("GET", "/openapi.json", {}),
                ("GET", "/nothing", {}),
                ("PUT", "/resource_request:try", {"token": rig.spawner, "body": {}}),
                ("GET", "/services/mlp/admin", {"base": "", "headers": browser}),
                ("POST", "/services/mlp/logout", {"base": "", "headers": browser}),
            ):
                refused = rig.ask(method, path, proxy=proxy, **sent)
                assert (refused.status, refused.headers["retry-after"]) == (503, "2")
                assert set(refused.json) == {"msg", "detail", "request_id"}
        with pytest.raises(InvalidStatus, match="503"):
            rig.socket("/queue:stream", token=rig.root_user)
    finally:
        rig.platform._leads = True
        rig.platform.lease._held = True


def test_strangers_learn_no_host_no_process_and_no_name_from_health_and_ready(rig: ApiRig) -> None:
    host, pid, _ = rig.platform.lease.holder.split("/")
    for path in ("/health", "/ready"):
        for proxy in (True, False):
            said = rig.ask("GET", path, proxy=proxy).body.decode()
            words = re.findall(r"[\w.-]+", said)
            assert not {host, pid, str(rig.root), "ann", "admin"} & set(words)
        assert rig.ask("GET", path, headers={"Host": "evil.example"}).status == 403
        assert rig.ask("PUT", path, {}).status in (401, 403)


def test_streams_of_one_that_leads_no_more_end_at_once(rig: ApiRig) -> None:
    rig.job("ann", "a", rig.ann)
    with rig.socket("/users/ann/jobs/a:stream", token=rig.ann) as stream:
        json.loads(stream.recv(PATIENCE_S))

        async def lose() -> None:
            for lost in rig.platform.on_lost:
                lost()

        rig.run(lose())
        _, code = drain(stream)
        assert code == 1001


def test_a_cluster_that_is_not_heard_of_is_told(rig: ApiRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rig.platform.executor, "trouble", lambda: verbatim("the cluster does not answer"))
    answer = rig.ask("GET", "/health")
    assert (answer.status, answer.json["status"]) == (200, "degraded")
    assert answer.json["problems"] == [
        {"component": "executor", "reason": "ExecutorTrouble", "message": "the cluster does not answer"}
    ]

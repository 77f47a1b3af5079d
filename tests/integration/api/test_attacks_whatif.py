"""What-if under attack: only platform admins, bounded bodies, bounded work; and explanations that name no strangers."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from support.rigs.api_rig import ApiRig

SCENARIO = {
    "version": 1,
    "nodes": [{"name": "n", "cpu": 4}],
    "tenants": [{"name": "red"}],
    "jobs": [{"name": "a", "cpu": 4, "duration": 10}],
}


@pytest.mark.parametrize("who", ["ann", "bob", "rita", "blue", "notebook"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_only_a_platform_admin_may_ask(rig: ApiRig, who: str, method: str) -> None:
    token = getattr(rig, who)
    body = SCENARIO if method == "POST" else None
    answer = rig.ask(method, "/simulate", body, token=token)
    assert (answer.status, answer.json["reason"]) == (403, "Forbidden")


def test_an_admin_gets_figures_for_a_scenario_and_for_the_present(rig: ApiRig) -> None:
    scenario = rig.ask("POST", "/simulate?lines=true", SCENARIO, token=rig.root_user)
    assert scenario.status == 200, scenario.body
    assert scenario.json["after"]["makespan_s"] == 10
    assert scenario.json["lines"][0]["event"] == "submitted"
    changes = {"tenants": {"red": {"cpu": 0.5}}, "policy": {"name": "fifo"}}
    present = rig.ask(
        "POST", "/simulate?chart=true", {"from": "now", "changes": changes}, token=rig.root_user
    )
    assert present.status == 200, present.body
    assert present.json["before"]["jobs"] == present.json["after"]["jobs"]
    assert present.json["after"]["gantt"].startswith("<svg")
    assert rig.ask("GET", "/users/ann/jobs/digits", token=rig.ann).json["phase"] == "running"
    export = rig.ask("GET", "/simulate", token=rig.root_user)
    assert {j["name"] for j in export.json["jobs"]} == {"ann/digits"}


BAD: list[Any] = [
    json.dumps({**SCENARIO, "jobs": [{"name": "a", "count": 1_000_000}]}).encode(),
    json.dumps({**SCENARIO, "nodes": [{"name": "n", "count": 200_001}]}).encode(),
    json.dumps({**SCENARIO, "jobs": [{"name": "x" * 3_000_000}]}).encode(),
    json.dumps({**SCENARIO, "jobs": [{"name": "a", "cpu": -4}]}).encode(),
    json.dumps({**SCENARIO, "jobs": [{"name": "a", "workers": 10**30}]}).encode(),
    json.dumps(
        {**SCENARIO, "jobs": [{"name": "a", "workers": 100_000, "count": 200_000, "cpu": 0}]}
    ).encode(),
    json.dumps(
        {**SCENARIO, "tenants": [{"name": "red", "quota": {"cpu": 1}, "reserved": {"cpu": 2}}]}
    ).encode(),
    json.dumps({**SCENARIO, "surprise": 1}).encode(),
    b'{"version":1,"nodes":' + b"[" * 500_000,
    b'{"version":1,"nodes":[{"name":"n","labels":' + b'{"a":' * 200_000,
    b'{"version":1,"nodes":[{"name":"n","cpu":NaN}],"tenants":[],"jobs":[]}',
    b'{"version":1,"until":1e999}',
    b"x" * 5_000_000,
    b"{}",
    b'{"from":"yesterday"}',
    b'{"from":{"history":{"since":"2026-01-01T00:00:00"}}}',
    b'{"from":{"history":{"since":"2026-01-01T00:00:00Z","until":"2025-01-01T00:00:00Z"}}}',
    b'{"from":"now","changes":{"tenants":{"red":{"cpu":-1}}}}',
    b'{"from":"now","changes":{"tenants":{"../red":{}}}}',
    b'{"from":"now","changes":{"new_nodes":[{"name":"n","count":1000000}]}}',
    b'{"from":"now","changes":{"new_nodes":[{"name":"n","count":10000},{"name":"m","count":10000}]}}',
    b'{"from":"now","changes":{"policy":{"name":"mine"}}}',
    b'{"from":"now","changes":{"policy":{"half_life_s":0}}}',
]


@pytest.mark.parametrize("raw", BAD, ids=range(len(BAD)))
def test_a_body_that_cannot_be_run_is_refused_with_a_short_answer(rig: ApiRig, raw: bytes) -> None:
    answer = rig.ask("POST", "/simulate", raw=raw, token=rig.root_user)
    assert (answer.status, answer.json["reason"]) == (403, "Invalid"), answer.body
    assert len(answer.body) < 5000
    assert rig.ask("GET", "/health").status == 200


def test_a_second_run_of_the_same_admin_is_refused_and_the_service_answers_others(rig: ApiRig) -> None:
    long = {**SCENARIO, "jobs": [{"name": "a", "count": 5000, "cpu": 1, "duration": 10, "every": 0.1}]}
    answers: list[int] = []
    thread = threading.Thread(
        target=lambda: answers.append(rig.ask("POST", "/simulate", long, token=rig.root_user).status)
    )
    thread.start()
    refused = None
    while thread.is_alive() and refused is None:
        second = rig.ask("POST", "/simulate", SCENARIO, token=rig.root_user)
        if second.status == 403:
            refused = second.json
        assert rig.ask("GET", "/users/ann/jobs", token=rig.ann).status == 200
    thread.join()
    assert refused is None or refused["reason"] == "Conflict"
    assert answers[0] in (200, 403)


def test_many_exports_at_once_by_one_admin_are_refused_but_one_at_a_time(rig: ApiRig) -> None:
    answers: list[tuple[int, str | None]] = []

    def ask() -> None:
        answer = rig.ask("GET", "/simulate?source=history&days=3650", token=rig.root_user)
        answers.append((answer.status, answer.json.get("reason")))

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(answers) <= {(200, None), (403, "Conflict")}
    assert (200, None) in answers
    assert rig.ask("GET", "/simulate", token=rig.root_user).status == 200


def test_explanations_are_only_for_users_who_may_see_the_job(rig: ApiRig) -> None:
    path = "/users/ann/jobs/digits/decisions"
    for token in (rig.ann, rig.rita, rig.root_user, rig.notebook):
        answer = rig.ask("GET", path, token=token)
        assert answer.status == 200
        assert answer.json[0]["kind"] == "admitted"
    missing = rig.ask("GET", "/users/ann/jobs/nothing/decisions", token=rig.bob)
    hidden = rig.ask("GET", path, token=rig.bob)
    assert (hidden.status, hidden.json["reason"]) == (missing.status, missing.json["reason"])

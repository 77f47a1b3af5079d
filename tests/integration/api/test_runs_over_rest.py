"""`JOB@RUN` in every route: who may for one run, and which one is meant when only the name is said."""

from __future__ import annotations

import json
import time

import pytest

from support.rigs.api_rig import ApiRig, drain
from support.waiting import PATIENCE_S


def run_to_the_end(rig: ApiRig, name: str, **fields: object) -> None:
    rig.job("ann", name, rig.ann, env={"SIM_DURATION": "0.05"}, **fields)
    rig.until("ann", name, "finished")


def test_a_certain_run_is_meant_by_every_route(rig: ApiRig) -> None:
    run_to_the_end(rig, "Lr-0.001")
    run_to_the_end(rig, "Lr-0.001", cpu=0.5)
    for path, run, cpu in (("Lr-0.001", 2, 0.5), ("Lr-0.001@1", 1, None), ("Lr-0.001%402", 2, 0.5)):
        job = rig.ask("GET", f"/users/ann/jobs/{path}", token=rig.ann).json
        assert (job["name"], job["run"]) == ("Lr-0.001", run)
        assert cpu is None or job["cpu"] == cpu
    base = "/users/ann/jobs/Lr-0.001@1"
    assert rig.ask("GET", f"{base}/why", token=rig.ann).json["run"] == 1
    assert rig.ask("GET", f"{base}/events", token=rig.ann).json[0]["kind"] == "submitted"
    assert rig.ask("GET", f"{base}/decisions", token=rig.ann).status == 200
    for query in ("", "?follow=1"):
        assert b"simulated rank 0 ended" in rig.ask("GET", f"{base}/logs{query}", token=rig.ann).body
    for path in (f"{base}:stream", f"{base}/logs:stream", "/users/ann/job_metrics/Lr-0.001@1"):
        with rig.socket(path, token=rig.ann) as socket:
            frames, code = drain(socket)
        assert code == 1000
        assert all(f["job"]["run"] == 1 for f in frames if f.get("type") == "job")
    listed = rig.ask("GET", "/users/ann/jobs?name=Lr-0.001", token=rig.ann).json
    assert [(j["name"], j["run"]) for j in listed] == [("Lr-0.001", 2), ("Lr-0.001", 1)]
    assert rig.ask("GET", "/users/ann/jobs?name=lr-0.001", token=rig.ann).json == []
    told = rig.ask("GET", "/decisions?user=ann&job=Lr-0.001@2", token=rig.root_user).json
    assert {(d["job"], d["run"]) for d in told} == {("Lr-0.001", 2)}
    both = rig.ask("GET", "/decisions?user=ann&job=Lr-0.001", token=rig.root_user).json
    assert {d["run"] for d in both} == {1, 2}
    assert rig.ask("PUT", "/users/ann/job_metrics/Lr-0.001@1:delete", {}, token=rig.root_user).status == 200
    assert rig.ask("DELETE", base, token=rig.ann).json["run"] == 1
    for wrong in ("Lr-0.001@9", "Lr-0.001@0", "Lr-0.001@x", "Lr-0.001@", "Lr-0.001@1@1"):
        answer = rig.ask("GET", f"/users/ann/jobs/{wrong}", token=rig.ann)
        assert (answer.status, answer.json["reason"]) == (403, "NotFound")


def test_a_run_that_has_not_ended_is_a_conflict_that_names_it(rig: ApiRig) -> None:
    rig.job("ann", "busy", rig.ann, env={"SIM_DURATION": "60"})
    answer = rig.ask("POST", "/users/ann/jobs", {"name": "busy", "code": "x"}, token=rig.ann)
    assert (answer.status, answer.json["reason"]) == (403, "Conflict")
    assert answer.json["msg"].startswith("busy run 1 has not ended, it is ")
    again = rig.ask("PUT", "/users/ann/jobs/busy:resubmit", {}, token=rig.ann)
    assert again.json["reason"] == "Conflict"
    rig.ask("PUT", "/users/ann/jobs/busy:cancel", token=rig.ann)


@pytest.mark.parametrize("name", ["..", ".", "-rf", ".ssh", "a/b", "a b", "a@2", "a:b", "", "ü", "x" * 51])
def test_troublesome_names_are_refused_with_a_valid_form(rig: ApiRig, name: str) -> None:
    answer = rig.ask("POST", "/users/ann/jobs", {"name": name, "code": "x"}, token=rig.ann)
    assert (answer.status, answer.json["reason"]) == (403, "Invalid")
    assert "name is " in answer.json["msg"]
    assert "letters, digits, -, _ and ." in answer.json["msg"] or "at most 50" in answer.json["msg"]


def test_a_jobs_own_token_means_its_own_run_and_no_other(rig: ApiRig) -> None:
    run_to_the_end(rig, "mine")
    second = rig.job("ann", "mine", rig.ann, env={"SIM_DURATION": "60"})
    rig.until("ann", "mine", "running")
    token = rig.job_token(second["uid"])
    for path in ("mine", "mine@2"):
        assert rig.ask("GET", f"/users/ann/jobs/{path}", token=token).json["uid"] == second["uid"]
        batch = {"source": "0.0.abc", "points": [{"n": 1, "t": time.time(), "v": {"loss": 1.0}}]}
        assert rig.ask("POST", f"/users/ann/job_metrics/{path}", batch, token=token).json == {"last": 1}
    for path in ("mine@1", "mine@3", "min"):
        assert rig.ask("GET", f"/users/ann/jobs/{path}", token=token).json["reason"] == "NotFound"
    rig.ask("PUT", "/users/ann/jobs/mine:cancel", token=rig.ann)
    rig.until("ann", "mine", "cancelled")


def test_an_admin_of_a_tenant_sees_its_runs_and_not_those_in_another(rig: ApiRig) -> None:
    run_to_the_end(rig, "moved", tenant="red")
    rig.ask("PUT", "/tenants/blue/members/ann", {"role": "member"}, token=rig.root_user)
    try:
        run_to_the_end(rig, "moved", tenant="blue")
        for who, sees, not_sees in ((rig.rita, 1, 2), (rig.blue, 2, 1)):
            for path in ("", "/events", "/logs", "/why"):
                assert rig.ask("GET", f"/users/ann/jobs/moved@{sees}{path}", token=who).status == 200
                hidden = rig.ask("GET", f"/users/ann/jobs/moved@{not_sees}{path}", token=who)
                absent = rig.ask("GET", f"/users/ann/jobs/moved@7{path}", token=who)
                assert hidden.json["reason"] == absent.json["reason"] == "NotFound"
                assert hidden.json["msg"].replace("@1", "@7").replace("@2", "@7") == absent.json["msg"]
        assert rig.ask("GET", "/users/ann/jobs/moved", token=rig.rita).json["reason"] == "NotFound"
        assert rig.ask("GET", "/users/ann/jobs/moved", token=rig.blue).json["run"] == 2
    finally:
        rig.ask("DELETE", "/tenants/blue/members/ann", token=rig.root_user)


def test_a_follower_of_a_job_name_stays_with_its_run(rig: ApiRig) -> None:
    rig.job("ann", "tail", rig.ann, env={"SIM_DURATION": "0.4"})
    with rig.socket("/users/ann/jobs/tail/logs:stream", token=rig.ann) as socket:
        json.loads(socket.recv(PATIENCE_S))
        rig.ask("PUT", "/users/ann/jobs/tail:cancel", token=rig.ann)
        assert rig.ask("PUT", "/users/ann/jobs/tail:resubmit", {}, token=rig.ann).json["run"] == 2
        frames, code = drain(socket)
    assert code == 1000
    assert [f["text"] for f in frames].count("simulated rank 0 runs on n1") == 0
    rig.until("ann", "tail@2", "finished")

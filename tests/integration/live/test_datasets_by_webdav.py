"""Datasets on the public port of a real hub, by the paths of the contract."""

from __future__ import annotations

import os
import signal

import pytest

from support.hubs.live_hub import LiveHub
from support.waiting import wait_for


@pytest.fixture(scope="module")
def dora(hub: LiveHub) -> str:
    """Somebody in none of the teams that other tests of this hub made, whose storage may be full."""
    hub.add_user("dora")
    return "dora"


@pytest.mark.parametrize("prefix", ["", "/services/mlp"])
def test_a_client_of_the_contract_works_at_the_root_and_below_the_service(
    hub: LiveHub, dora: str, prefix: str
) -> None:
    name = f"pets{len(prefix)}"
    bearer = {"Authorization": f"Bearer {hub.token(dora)}"}
    api = f"{prefix}/api/v1/users/{dora}/datasets"
    made = hub.http.post(api, json={"name": name, "size": 1000}, headers=bearer)
    assert made.status_code == 201, made.text
    body = os.urandom(3 << 20)
    files = f"{prefix}/data/{dora}/{name}"
    put = hub.http.put(f"{files}/cats", content=body, headers=bearer)
    assert put.status_code == 201, put.text
    assert hub.http.get(f"{files}/cats", headers=bearer).content == body
    listed = hub.http.request("PROPFIND", f"{files}/", headers={**bearer, "Depth": "1"})
    assert listed.status_code == 207
    assert f"{files}/cats" in listed.text
    assert hub.http.get(f"{files}/cats", headers={"Authorization": "Bearer wrong"}).status_code == 401
    theirs = {"Authorization": f"Bearer {hub.token('bob')}"}
    assert hub.http.get(f"{files}/cats", headers=theirs).status_code == 404
    ready = {"state": "ready", "progress": 100}
    assert hub.http.put(f"{api}/{name}:heartbeat", json=ready, headers=bearer).status_code == 200
    wait_for(
        lambda: hub.http.get(f"{api}/{name}", headers=bearer).json()["size"] == len(body),
        message="for the exact size",
    )
    assert hub.http.delete(files, headers=bearer).status_code == 204
    wait_for(
        lambda: hub.http.get(f"{api}/{name}", headers=bearer).status_code == 403, message="for it to be gone"
    )


def test_the_process_of_files_is_started_again_when_it_dies(hub: LiveHub) -> None:
    pid = hub.pids()["data"]
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: hub.pids()["data"] not in (None, pid), message="for another one")
    bearer = {"Authorization": f"Bearer {hub.token('ann')}"}
    wait_for(
        lambda: hub.http.get("/data/ann/nothing/x", headers=bearer).status_code == 404,
        message="for files to be served",
    )
    chinese = {**bearer, "Accept-Language": "zh-CN"}
    assert hub.http.get("/data/ann", headers=chinese).json()["msg"].startswith("请指明数据集")

    def well() -> bool:
        found = hub.http.get("/services/mlp/api/v1/health").json()["problems"]
        return not [problem for problem in found if problem["component"] == "data"]

    wait_for(well, message="for the service to find it well")

"""Datasets' files as the public port has them: through the bundled proxy, on the UNIX socket that a hub has them on."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from mlp_hub.unix_sockets import url_of
from support.proxy.running_proxy import RunningProxy
from support.rigs.api_rig import ApiRig
from support.rigs.dav_rig import _PROGRAM
from support.waiting import PATIENCE_S, wait_for


@pytest.fixture(scope="module")
def public(rig: ApiRig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """The public port, as ann."""
    directory = tmp_path_factory.mktemp("public")
    socket = directory / "data.sock"
    argv = [sys.executable, "-c", _PROGRAM, str(rig.root), str(rig.sockets[True]), rig.data, str(socket)]
    with (directory / "dav.log").open("wb") as log:
        files = subprocess.Popen(argv, stdout=log, stderr=log)
    proxy = RunningProxy(directory)
    proxy.start()
    try:
        for path in ("/data", "/services/mlp/data"):
            assert proxy.routes("POST", path, {"target": url_of(socket)}).status == 201
        with httpx.Client(
            base_url=f"http://127.0.0.1:{proxy.port}",
            headers={"Authorization": "Bearer ann-token"},
            timeout=PATIENCE_S,
            trust_env=False,
        ) as client:
            wait_for(
                lambda: client.get("/data/ann/nothing/x").status_code == 404,
                message="for files to be served",
            )
            yield client
    finally:
        proxy.stop(kill=True)
        files.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            files.wait(PATIENCE_S)
        files.kill()


def make(rig: ApiRig, name: str) -> str:
    body = {"name": name, "size": 0, "tenant": "red"}
    assert rig.ask("POST", "/users/ann/datasets", body, token=rig.ann).status == 201
    return f"/data/ann/{name}"


@pytest.mark.parametrize("prefix", ["", "/services/mlp"])
def test_files_go_in_and_come_out_by_both_paths(rig: ApiRig, public: httpx.Client, prefix: str) -> None:
    data = prefix + make(rig, f"through{len(prefix)}")
    body = os.urandom(20 << 20)
    assert public.put(f"{data}/f", content=body).status_code == 201
    assert public.get(f"{data}/f").content == body
    part = public.get(f"{data}/f", headers={"Range": "bytes=5-9"})
    assert (part.status_code, part.content) == (206, body[5:10])
    listed = public.request("PROPFIND", f"{data}/", headers={"Depth": "1"})
    assert listed.status_code == 207
    assert f"{data}/f" in listed.text
    moved = public.request("MOVE", f"{data}/f", headers={"Destination": f"{public.base_url}{data}/g"})
    assert moved.status_code == 201, moved.text
    assert public.delete(f"{data}/g").status_code == 204
    assert public.get(f"{data}/g", headers={"Authorization": "Bearer bob-token"}).status_code == 404


@pytest.mark.whole
@pytest.mark.skipif(shutil.which("litmus") is None, reason="litmus is not installed: apt-get install litmus")
def test_litmus_passes_through_the_proxy(rig: ApiRig, public: httpx.Client, tmp_path: Path) -> None:
    data = make(rig, "litmus")
    run = subprocess.run(
        ["litmus", f"{public.base_url}{data}/", "ann", "ann-token"],
        cwd=tmp_path,
        env={**os.environ, "TESTS": "basic copymove props locks http"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    assert "FAIL" not in run.stdout, run.stdout

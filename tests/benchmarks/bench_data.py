"""Files of datasets up and down through the public port, beside nginx with WebDAV serving the same file."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench_common import Context, Figure, median_of
from mlp_hub.unix_sockets import url_of
from support.ports import free_port
from support.proxy.running_proxy import RunningProxy
from support.rigs.api_rig import ApiRig
from support.rigs.dav_rig import _PROGRAM
from support.waiting import PATIENCE_S, wait_for

NAME = "data"
MIB = 2**20
SIZE = int(os.environ.get("MLP_BENCH_DATA_MIB", "512")) * MIB
TIMES = 3
ABOUT = (
    f"one file of {SIZE // MIB} MiB of chance by curl over loopback, medians of {TIMES}: PUT and GET through the public port (proxy, data "
    "process, quota, SHA-256, fsync), and to nginx with its dav module, which does none of these; what the data process takes of memory"
)
_NGINX = """
worker_processes 1; daemon off; pid {dir}/nginx.pid; error_log {dir}/error.log;
events {{ worker_connections 64; }}
http {{
  access_log off; client_max_body_size 0; client_body_temp_path {dir}/body; sendfile on;
  proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
  server {{ listen 127.0.0.1:{port}; root {dir}/files; location / {{ dav_methods PUT DELETE; create_full_put_path on; }} }}
}}
"""


def run(context: Context) -> list[Figure]:
    """Measure both."""
    root = context.tmp / "data"
    root.mkdir(parents=True)
    file = root / "file"
    with file.open("wb") as out:
        for _ in range(SIZE // MIB):
            out.write(os.urandom(MIB))
    with _ours(root) as (url, pid):
        token = {"Authorization": "Bearer ann-token"}
        ours = _both(f"{url}/data/ann/bench/file", file, token)
        memory = _peak(pid)
    with _nginx(root) as url:
        anchor = _both(f"{url}/file", file, {})
    shutil.rmtree(root)
    command = "make bench ONLY=data"
    return [
        Figure("upload to a dataset", ours[0], "MB/s", anchor[0], "nginx dav", command=command),
        Figure("download from a dataset", ours[1], "MB/s", anchor[1], "nginx dav", command=command),
        Figure("memory of the data process, most", memory, "MB", note="after all of that", command=command),
    ]


def _both(url: str, file: Path, headers: Mapping[str, str]) -> tuple[float, float]:
    """Return how fast the file goes up and comes down, in MB/s."""
    said = [part for name, value in headers.items() for part in ("-H", f"{name}: {value}")]
    up = [_curl("speed_upload", url, "-T", str(file), *said) for _ in range(TIMES)]
    down = [_curl("speed_download", url, *said) for _ in range(TIMES)]
    return median_of(up), median_of(down)


def _curl(what: str, url: str, *more: str) -> float:
    asked = ["curl", "-sSf", "-o", "/dev/null", "-H", "Expect:", "-w", f"%{{{what}}}", *more, url]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    return float(done.stdout) / 1e6


def _peak(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6


@contextlib.contextmanager
def _ours(root: Path) -> Iterator[tuple[str, int]]:
    """Give the public port of a service with ann's dataset `bench`, and the pid of the process that has its files."""
    state, socket = root / "hub", root / "data.sock"
    state.mkdir()
    with ApiRig(state) as rig:
        rig.tenant("red", "rita", members=("ann",))
        body = {"name": "bench", "size": 0, "tenant": "red"}
        assert rig.ask("POST", "/users/ann/datasets", body, token=rig.ann).status == 201
        argv = [sys.executable, "-c", _PROGRAM, str(state), str(rig.sockets[True]), rig.data, str(socket)]
        with (root / "dav.log").open("wb") as log:
            files = subprocess.Popen(argv, stdout=log, stderr=log)
        proxy = RunningProxy(root)
        proxy.start()
        try:
            assert proxy.routes("POST", "/data", {"target": url_of(socket)}).status == 201
            url = f"http://127.0.0.1:{proxy.port}"
            probe = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", f"{url}/data/ann/nothing/x"]
            wait_for(
                lambda: subprocess.run(probe, capture_output=True, text=True, check=False).stdout == "401",
                message="for files to be served",
            )
            yield url, files.pid
        finally:
            proxy.stop(kill=True)
            files.terminate()
            files.wait(PATIENCE_S)


@contextlib.contextmanager
def _nginx(root: Path) -> Iterator[str]:
    port = free_port()
    home = root / "nginx"
    (home / "files").mkdir(parents=True)
    config = home / "nginx.conf"
    config.write_text(_NGINX.format(dir=home, port=port))
    for path in (root.parent, root, home, home / "files"):
        path.chmod(0o777)  # as root its workers are nobody
    child = subprocess.Popen(["nginx", "-c", str(config), "-e", str(home / "error.log")])
    try:
        url = f"http://127.0.0.1:{port}"
        probe = ["curl", "-s", "-o", "/dev/null", url]
        wait_for(lambda: subprocess.run(probe, check=False).returncode == 0, message="for nginx to listen")
        yield url
    finally:
        child.terminate()
        child.wait(PATIENCE_S)

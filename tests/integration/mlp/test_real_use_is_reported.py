"""A real Jupyter Server reports its real use: a thread that computes counts, whose kernel is idle and whose page is closed."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from support.hubs.jupyter_servers import TOKEN, jupyter_server
from support.hubs.kernel_client import Kernel
from support.waiting import wait_for

BURN = """
import threading
stop = threading.Event()
def burn():
    while not stop.is_set():
        pass
threading.Thread(target=burn, daemon=True).start()
"""


@contextmanager
def service() -> Iterator[tuple[str, list[float]]]:
    """Take reports, and answer that a countdown is in progress, so that they come often."""
    reports: list[float] = []

    class Takes(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert self.path.endswith("/users/ann/idle_servers:report")
            assert self.headers["Authorization"] == "Bearer of-ann"
            reports.append(body["idle_s"])
            answer = json.dumps({"left_s": 300.0}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Takes)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", reports
    finally:
        server.shutdown()
        server.server_close()


def test_a_kernel_that_computes_without_a_page_is_used_and_a_quiet_one_with_an_open_page_is_not(
    tmp_path: Path,
) -> None:
    with service() as (url, reports):
        env = {"MLP_API_URL": f"{url}/api/v1", "MLP_TOKEN": "of-ann", "JUPYTERHUB_USER": "ann"}
        with jupyter_server(tmp_path, env=env) as server:
            wait_for(lambda: reports, message="for the first report")
            kernel = Kernel(server.url, "ann", TOKEN, session="page")
            kernel.run(BURN)
            kernel.close()
            begun = len(reports)
            # the first of them may still count the page's own requests
            wait_for(lambda: len(reports) > begun + 2, message="for reports while it computes")
            assert reports[begun + 1 : begun + 3] == [0.0, 0.0]
            kernel.open()
            kernel.run("stop.set()")
            ended = len(reports)
            wait_for(lambda: len(reports) > ended + 3, message="for reports while it is quiet")
            assert reports[-1] > reports[-2] > 0, "the page is open, and nobody uses the server"
            kernel.close()


def test_an_untouched_page_that_stores_its_layout_is_not_use_and_a_saved_file_is(tmp_path: Path) -> None:
    with service() as (url, reports):
        env = {"MLP_API_URL": f"{url}/api/v1", "MLP_TOKEN": "of-ann", "JUPYTERHUB_USER": "ann"}
        with jupyter_server(tmp_path, env=env) as server:
            user = str(server.client.base_url).removesuffix("/").removesuffix("/api")

            def untouched() -> None:
                """Send what a page of JupyterLab on its launcher sends."""
                layout = {"data": {}, "metadata": {"id": "default"}}
                stored = server.client.put(f"{user}/lab/api/workspaces/default", json=layout)
                assert stored.status_code == 204, stored.text
                for polled in ("/contents", "/sessions", "/kernels", "/terminals"):
                    assert server.client.get(polled).status_code == 200

            def next_report() -> float:
                before = len(reports)
                wait_for(lambda: len(reports) > before, message="for a report")
                return reports[-1]

            next_report()  # which may be of its start
            for _ in range(2):
                untouched()
                last = next_report()
            assert last > 0, "a page that nobody touches sent requests only"
            saved = server.client.put(
                "/contents/a.txt", json={"type": "file", "format": "text", "content": "a"}
            )
            assert saved.status_code == 201
            assert next_report() == 0.0
            untouched()
            assert next_report() > 0

"""From `mlp-hub up` on an existing state to the login page, beside JupyterHub alone."""

from __future__ import annotations

import threading
import time

import httpx

from bench_common import Context, Figure, Stopwatch, bare_hub, median_of

NAME = "start"
ABOUT = "up after down (state exists) until the login page answers 200, polled every 20 ms; median of 3; JupyterHub alone measured alike"
RUNS = 3


def run(context: Context) -> list[Figure]:
    hub = context.hub
    login, ready = [], []
    for _ in range(RUNS):
        hub.down()
        watch = Stopwatch()
        done: list[float] = []
        thread = threading.Thread(target=lambda d=done, w=watch: d.append(_until_login(hub.url, w)))
        thread.start()
        hub.up()
        ready.append(watch.seconds)
        thread.join()
        login.append(done[0])
    again = Stopwatch()
    hub.up()
    idle = again.seconds
    bare = _bare(context)
    return [
        Figure(
            "second up to login page",
            median_of(login),
            "s",
            bare,
            "JupyterHub alone, same run",
            f"target <= 3 s; up returned after {median_of(ready):.2f} s; up on a running hub {idle:.2f} s",
            "make bench ONLY=start",
        )
    ]


def _until_login(url: str, watch: Stopwatch) -> float:
    while watch.seconds < 120:
        try:
            if httpx.get(f"{url}/hub/login", trust_env=False).status_code == 200:
                return watch.seconds
        except httpx.TransportError:
            pass
        time.sleep(0.02)
    raise AssertionError("no login page within 120 s")


def _bare(context: Context) -> float:
    times = []
    directory = context.tmp / "bare-start"
    directory.mkdir()
    for _ in range(RUNS + 1):
        watch = Stopwatch()
        with bare_hub(directory) as (url, _pid):
            times.append(_until_login(url, watch))
    return median_of(times[1:])  # the first run makes the database

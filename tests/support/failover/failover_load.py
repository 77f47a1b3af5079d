"""Changes and reports without end, so that whoever leads is often in the middle of a write."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Iterator

from mlp_hub.cli.http import request
from support.failover.persistent_write import TRY_S
from support.failover.two_services import API
from support.hubs.live_hub import LiveHub

REPORTS = """
import mlp, time
for step in range(10**6):
    mlp.report(loss=step, step=step)
    time.sleep(0.02)
"""
JOBS = 2


@contextlib.contextmanager
def failover_load(hub: LiveHub, choices: random.Random, writers: int = 3) -> Iterator[None]:
    """Change the tenant `red` by so many writers, and let jobs of ann report; somebody leads when it ends."""
    over = threading.Event()

    def change() -> None:
        while not over.is_set():
            request(
                ("127.0.0.1", hub.port),
                "PUT",
                f"{API}/tenants/red",
                token=hub.token("admin"),
                body={"network": choices.choice(("none", "outbound"))},
                timeout=TRY_S,
            )

    for number in range(JOBS):
        hub.submit("ann", f"reports{number}", REPORTS, cpu=0.1, ram=256)
    threads = [threading.Thread(target=change, daemon=True) for _ in range(writers)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
    for number in range(JOBS):
        hub.call("PUT", f"/users/ann/jobs/reports{number}:cancel", "ann")

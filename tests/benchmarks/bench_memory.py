"""Memory of the platform at rest, beside JupyterHub and its proxy alone."""

from __future__ import annotations

import time

import httpx

from bench_common import Context, Figure, bare_hub
from proc import pss_of_tree
from support.waiting import wait_for

NAME = "memory"
ABOUT = "sum of PSS of supervisor, proxy, hub and service after 20 s at rest, beside a JupyterHub with NativeAuthenticator and the same proxy alone"


def run(context: Context) -> list[Figure]:
    hub = context.hub
    hub.ok("GET", "/session")
    time.sleep(20)
    parts = {
        name: pss_of_tree(c["pid"], own_only=True)
        for name, c in hub.status()["components"].items()
        if c.get("pid")
    }
    directory = context.tmp / "bare"
    directory.mkdir()
    with bare_hub(directory) as (url, pid):
        wait_for(lambda: _answers(f"{url}/hub/login"))
        time.sleep(20)
        bare = pss_of_tree(pid)
    ours = sum(parts.values())
    split = ", ".join(f"{name} {mb:.0f}" for name, mb in parts.items())
    return [
        Figure(
            "memory of the platform at rest",
            ours,
            "MB",
            bare,
            "JupyterHub and proxy alone",
            f"{ours - bare:+.0f} MB, target +60; {split}",
            "make bench ONLY=memory",
        )
    ]


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False

"""Memory of the platform at rest, beside JupyterHub and its proxy alone."""

from __future__ import annotations

import subprocess
import time

import httpx

from bench_common import Context, Figure, anchor_proxy
from live_hub import BIN, free_port, wait_for
from proc import pss_of_tree

NAME = "memory"
ABOUT = "sum of PSS of supervisor, proxy, hub and service after 20 s at rest, beside a JupyterHub with NativeAuthenticator and the same proxy alone"
BARE = """
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_port = {hub_port}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api_port}"
c.ConfigurableHTTPProxy.command = {command!r}
c.JupyterHub.authenticator_class = "native"
c.Authenticator.allow_all = True
c.JupyterHub.db_url = "sqlite:///{dir}/hub.sqlite"
c.JupyterHub.cookie_secret_file = "{dir}/cookie"
"""


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
    port = free_port()
    (directory / "c.py").write_text(
        BARE.format(
            port=port, hub_port=free_port(), api_port=free_port(), dir=directory, command=anchor_proxy()
        )
    )
    child = subprocess.Popen(
        [str(BIN / "jupyterhub"), "-f", str(directory / "c.py")],
        cwd=directory,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(lambda: _answers(f"http://127.0.0.1:{port}/hub/login"), 60)
        time.sleep(20)
        bare = pss_of_tree(child.pid)
    finally:
        child.terminate()
        child.wait(30)
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

"""Notebook servers of a real hub, for tests that run code in one."""

from __future__ import annotations

import httpx

from support.hubs.kernel_client import Kernel
from support.hubs.live_hub import LiveHub
from support.local_names import LocalNames
from support.waiting import PATIENCE_S, wait_for


def client_of(hub: LiveHub, user: str) -> httpx.Client:
    """Return a client that is a user to hub and servers."""
    headers = {"Authorization": f"token {hub.token(user)}"}
    client = httpx.Client(base_url=hub.url, headers=headers, transport=LocalNames(), timeout=PATIENCE_S)
    hub.clients.append(client)
    return client


def start_notebook(hub: LiveHub, user: str) -> Kernel:
    """Start the server of a user and return a kernel in it."""
    api = client_of(hub, user)
    started = api.post(f"/hub/api/users/{user}/server", json={"user_options": {"cpu": 0.2, "ram": 512}})
    assert started.status_code in (201, 202), started.text

    def ready() -> bool:
        server = api.get(f"/hub/api/users/{user}").json()["servers"].get("")
        return bool(server and server["ready"])

    wait_for(ready, message="for the notebook server")
    return Kernel(hub.notebooks(user), user, hub.token(user))


def stop_notebook(hub: LiveHub, user: str) -> None:
    """Stop the server of a user, and return when it has ended."""
    api = client_of(hub, user)
    api.delete(f"/hub/api/users/{user}/server")
    wait_for(lambda: not api.get(f"/hub/api/users/{user}").json()["servers"], message="for it to end")

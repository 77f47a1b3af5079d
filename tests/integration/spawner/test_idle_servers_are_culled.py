"""Notebook servers that nobody uses are stopped by a service of the hub's own, which ends with the hub."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlp_hub import sandbox
from support.hubs.hub_stack import user_token
from support.waiting import wait_for

STACK = {"MLP_CULL_IDLE_S": "4"}

pytestmark = pytest.mark.skipif(sandbox.capabilities().mode is None, reason="no sandbox can be made here")


def cullers(stack) -> list[int]:
    """Find the processes that cull for this hub, by the socket that they ask at."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"mlp_hub.hub_integration.culler" in line and str(stack.settings.hub_socket).encode() in line:
            found.append(int(process.name))
    return found


def test_a_server_that_nobody_uses_is_stopped_and_gives_its_room_back(stack):
    stack.add("ann")
    token = user_token(stack, "ann", "servers!user", "read:users!user")
    assert stack.api("POST", "/users/ann/server", token, json={}).status_code in (201, 202)
    wait_for(lambda: "Culling server ann" in stack.log("hub"), message="for the idle server to be culled")
    wait_for(lambda: not stack.api("GET", "/users/ann", token).json()["servers"], message="for it to be gone")
    wait_for(lambda: "ann/" not in stack.ledger()["rows"], message="for its room to be given back")


def test_the_culler_has_only_the_rights_it_needs(stack):
    token = stack.settings.secret("operator_token")
    found = stack.api("GET", "/services", token=token)
    if found.status_code == 200:
        assert found.json()["mlp-culler"]["roles"] == ["mlp-culler"]
    assert len(cullers(stack)) == 1


def test_it_ends_with_a_hub_that_is_killed_and_comes_with_the_next(stack):
    before = cullers(stack)
    stack.kill("hub")
    wait_for(lambda: not set(before) & set(cullers(stack)), message="for it to end")
    stack.start_hub()
    stack.wait_up()
    wait_for(lambda: len(cullers(stack)) == 1, message="for the next one")

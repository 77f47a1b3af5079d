"""A notebook that runs out of memory says so, with its limit: in the cell that did it, or on the hub's pages."""

from __future__ import annotations

import contextlib
import json

import pytest

from mlp_hub import sandbox
from support.hubs.hub_stack import Browser, start_server, stop_server, text_of
from support.hubs.kernel_client import Kernel
from support.waiting import PATIENCE_S, wait_for

RAM = 400
EATS = "print('before', flush=True)\nx = []\nwhile True: x.append(b'1' * (8 << 20))"

pytestmark = pytest.mark.skipif(
    "memory" not in sandbox.capabilities().bases, reason="nobody counts memory here"
)


def messages_of_death(kernel: Kernel, code: str) -> list[dict]:
    """Run code that ends its kernel; return what the page was told until it is restarted."""
    told = []
    kernel.send(code)
    while True:
        got = json.loads(kernel.ws.recv(timeout=PATIENCE_S))
        told.append(got)
        if got["header"]["msg_type"] == "status" and got["content"]["execution_state"] == "restarting":
            return told


def words(told: list[dict], msg_id: str) -> str:
    """Return what stands below the cell of a request."""
    return "".join(
        m["content"]["text"]
        for m in told
        if m["header"]["msg_type"] == "stream" and m["parent_header"].get("msg_id") == msg_id
    )


def test_a_kernel_that_ran_out_of_memory_says_so_in_its_cell_and_another_that_died_does_not(stack):
    stack.add("oma")
    token = start_server(stack, "oma", ram=RAM)
    eater, other = (Kernel(stack.notebooks("oma"), "oma", token) for _ in range(2))
    assert eater.run("1") == "1"
    assert other.run("1") == "1"
    assert "Error" in other.run("import os; open(os.environ['MLP_MEMORY_EVENTS'], 'w')")
    said = words(messages_of_death(eater, EATS), eater.last)
    assert said.startswith("before\nOut of memory: this kernel was ended")
    assert f"used more than its {RAM} MiB of memory" in said
    assert "start the server with more memory" in said
    assert words(messages_of_death(other, "import os; os.kill(os.getpid(), 9)"), other.last) == ""
    other.close()
    other.open()  # answers once the new kernel does; what is sent before may be lost
    again = words(messages_of_death(other, EATS), other.last)
    assert "Out of memory" in again
    for kernel in (eater, other):
        kernel.close()
    stop_server(stack, "oma", token)


def test_a_server_that_ran_out_of_memory_is_reported_on_the_hubs_pages_until_the_next_one_starts(stack):
    stack.add("omb")
    token = start_server(stack, "omb", ram=RAM)
    kernel = Kernel(stack.notebooks("omb"), "omb", token)
    first = "import os\nopen(f'/proc/{os.getppid()}/oom_score_adj', 'w').write('1000')\n"
    with contextlib.suppress(Exception):
        kernel.run(first + EATS, timeout=PATIENCE_S)
    with contextlib.suppress(Exception):
        kernel.close()
    wait_for(lambda: not stack.api("GET", "/users/omb", token).json()["servers"])
    person = Browser(stack)
    person.login("omb")
    said = f"The notebook server ran out of memory: it used more than its {RAM} MiB. Start it again with more"
    for page in ("/hub/spawn/omb", "/hub/home"):
        assert said in text_of(person.get(page))
    token = start_server(stack, "omb", ram=RAM)
    assert "ran out of memory" not in text_of(person.get("/hub/home"))
    stop_server(stack, "omb", token)
    assert "ran out of memory" not in text_of(person.get("/hub/spawn/omb"))

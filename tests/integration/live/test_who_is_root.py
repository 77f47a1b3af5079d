"""Processes of a hub that are root are those that the documentation lists; what takes apart strangers' bytes has no rights."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from support.hubs.live_hub import LiveHub
from support.waiting import wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the hub has to be root")
DOC = Path(__file__).parents[3] / "docs/explanation/isolation.md"
LOOK = "mlp_hub.executors.shared_volume.models.detector"
SEND = "mlp_hub.outbound.sending"


class Seen(NamedTuple):
    """A process as the kernel tells of it."""

    pid: int
    parent: int
    command: str
    status: dict[str, str]
    root: list[str]

    @property
    def uid(self) -> int:
        return int(self.status["Uid"].split()[1])


def listed(heading: str) -> list[str]:
    """The names in the first column of the table below a heading's row."""
    rows = DOC.read_text().partition(f"| {heading} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [re.findall(r"`([^`]+)`", row.split("|")[1])[-1] for row in rows]


def all_of(hub: LiveHub) -> Iterator[Seen]:
    """What the supervisor started, and all that has come of it."""
    seen: dict[int, Seen] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                lines = (line.split(":", 1) for line in (entry / "status").read_text().splitlines())
                status = {name: value.strip() for name, value in lines}
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                root = sorted(path.name for path in (entry / "root").iterdir())
            except (OSError, ValueError):
                continue
            seen[int(entry.name)] = Seen(int(entry.name), int(status["PPid"]), command, status, root)
    ours = {pid for pid in hub.pids().values() if pid is not None}
    while more := {one.pid for one in seen.values() if one.parent in ours} - ours:
        ours |= more
    return (seen[pid] for pid in ours if pid in seen)


def helpers_of(hub: LiveHub, name: str) -> list[Seen]:
    return [one for one in all_of(hub) if f" {name}" in one.command and "mlp_hub.confined" in one.command]


def has_no_rights(one: Seen) -> None:
    assert one.uid > 0, one
    assert (
        int(one.status["CapEff"], 16) == int(one.status["CapPrm"], 16) == int(one.status["CapBnd"], 16) == 0
    ), one
    assert (one.status["NoNewPrivs"], one.status["Seccomp"]) == ("1", "2"), one
    assert not {"bin", "proc", "root", "home"} & set(one.root), one


def test_each_process_that_is_root_is_documented(hub: LiveHub) -> None:
    hub.submit("ann", "stays", "import time; time.sleep(600)")
    hub.wait_phase("ann", "stays", "running")
    known = {"node": "/bin/node ", "mlp_hub.sandbox.shim": "/mlp_hub/sandbox/shim/"}
    named = [known.get(name, name) for name in listed("Process")]
    unknown = [
        one.command for one in all_of(hub) if not one.uid and not any(name in one.command for name in named)
    ]
    hub.ok("PUT", "/users/ann/jobs/stays:cancel", "ann")
    assert unknown == []


def test_the_process_that_connects_to_user_addresses_has_no_rights(hub: LiveHub) -> None:
    assert SEND in listed("Helper")
    channel = {"name": "hook", "address": "http://nowhere.invalid:9/", "events": ["failed"]}
    hub.ok("PUT", "/users/ann/notifications", "ann", {"channels": [channel]})
    said = hub.ok("POST", "/users/ann/notifications:test", "ann", {"channel": "hook"})
    assert said["taken"] is False
    (one,) = helpers_of(hub, SEND)  # it stays a while
    has_no_rights(one)


def test_the_process_that_looks_for_models_has_no_rights_and_runs_as_its_user(hub: LiveHub) -> None:
    assert LOOK in listed("Helper")
    # header enough for seconds of looking
    code = """
import os, struct
os.umask(0o077)
header = b'{"a":[' + b'[],' * 5_000_000 + b'[]]}'
for n in range(5):
    os.mkdir(f"/workspace/m{n}")
    with open(f"/workspace/m{n}/m.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
"""
    hub.submit("ann", "models", code, ram=400)
    hub.wait_phase("ann", "models", "finished")
    found: list[Seen] = []

    def ask() -> None:
        hub.call("GET", "/users/ann/jobs/models/models", "ann")

    asking = threading.Thread(target=ask)
    asking.start()

    def look() -> bool:
        found.extend(one for one in helpers_of(hub, LOOK) if one.status["Seccomp"] == "2")
        return bool(found)

    wait_for(look)
    asking.join()
    has_no_rights(found[0])
    assert found[0].uid == (hub.home / "homes/ann").stat().st_uid

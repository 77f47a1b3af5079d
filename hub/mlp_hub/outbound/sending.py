"""Process that sends notices, run by `mlp_hub.confined` with the services' names.

The notices, with their addresses, come on standard input alone.

in:   lines of JSON: {"id": n, "act": "send" or "check", "kind", "address", "allowed", "mail", "title", "body", "data"}
out:  lines of JSON: {"id": n}, with "why" where it was not done, and "service" after a check

Each is sent by a separate process, forked from this one so that the libraries are loaded once. An
address that hangs or floods harms nobody else's notice, and the kernel ends its process. This
process ends when the input does.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import certifi

from mlp_hub.outbound import alertmanager, mail, posting, services, traces, webhook
from mlp_hub.outbound.guard import Forbidden, Guard
from mlp_hub.point_targets import KINDS

LIMIT_S = 25
"""Safety: seconds after which a notice that is still being sent is given up."""
LOOK_S = 5
"""Safety: seconds after which the check of an address is given up: a person waits for it, and sending checks again."""
_OF_POINTS = {name: import_module(kind.sends) for name, kind in KINDS.items()}
"""Modules by kind of target of points. There an unexpected error is a fault at these points, which may not hold up others."""
_SENDS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "mail": mail.send,
    "webhook": webhook.send,
    "service": services.send,
    "traces": traces.send,
    "alertmanager": alertmanager.send,
    **{name: module.send for name, module in _OF_POINTS.items()},
}
_TARGETS: dict[str, Callable[[], None]] = {
    "traces": traces.prepare,
    "alertmanager": alertmanager.prepare,
    **{name: module.prepare for name, module in _OF_POINTS.items()},
}
"""Contract: kinds of targets of the operator. A process with the argument `--KIND` sends to that one, and no notices."""


def _done(asked: dict[str, Any]) -> dict[str, Any]:
    allowed = list(asked["allowed"])
    if asked["kind"] == "mail" and asked["mail"] is not None:
        allowed = [asked["mail"]["host"]]  # the operator's own, and nothing else
    elif asked["kind"] in _TARGETS:
        allowed = [posting.place_of(asked["address"])]  # the operator's own too
    guard = Guard(allowed)
    guard.hold()
    try:
        found = _checked(asked, guard) if asked["act"] == "check" else _SENDS[asked["kind"]](asked)
    except TimeoutError:
        found = {"why": "silent"}
    except Forbidden:
        found = {"why": "forbidden"}
    except socket.gaierror:
        found = {"why": "no-host"}
    except OSError:
        found = {"why": "unreachable"}
    except Exception:  # noqa: BLE001 - whatever a library makes of what somebody else's server says
        found = {"why": "fault" if asked["kind"] in _OF_POINTS else "unreachable"}
    return {"why": "forbidden"} if guard.refused else found


def _checked(asked: dict[str, Any], guard: Guard) -> dict[str, Any]:
    """Return the service that an address is of, or that it is private. A host without an address now may have one later."""
    found = services.check(asked)
    address = str(asked["address"])
    is_service = "service" in found
    place = services.own_host(address, asked["allowed"]) if is_service else webhook.place_of(address)
    with contextlib.suppress(OSError, UnicodeError):
        if place is not None and not guard.admits(*place):
            return {"why": "forbidden"}
    return found


def _child(asked: dict[str, Any], out: int) -> None:
    """Do it, say so and end, whatever happens."""
    try:
        signal.alarm(LOOK_S if asked["act"] == "check" else LIMIT_S)
        os.write(out, json.dumps({"id": asked["id"], **_done(asked)}).encode() + b"\n")
    finally:
        os._exit(0)


def prepare() -> None:
    """Load all that is needed later, of which nothing is in sight then."""
    for argument in sys.argv[1:]:
        target = argument.removeprefix("--")
        if argument.startswith("--") and target in _TARGETS:
            _TARGETS[target]()
            return
    services.only(sys.argv[1:])
    services.prepare()
    mail.prepare()


def shown() -> list[str]:
    """Return the certificates of authorities, which libraries read for each connection."""
    return [certifi.where()]


def main() -> None:
    """Serve until nobody asks any more."""
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        _serve()


def _serve() -> None:
    children: dict[int, tuple[int, int]] = {}  # where its word comes from: its process and what it is at
    rest = b""
    while True:
        for ready in select.select([0, *children], [], [])[0]:
            if ready in children:
                _over(ready, *children.pop(ready))
                continue
            data = os.read(0, 1 << 16)
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                _begin(json.loads(line), children)


def _begin(asked: dict[str, Any], children: dict[int, tuple[int, int]]) -> None:
    back, out = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(0)
        _child(asked, out)
    os.close(out)
    children[back] = (pid, int(asked["id"]))


def _over(back: int, pid: int, number: int) -> None:
    """Pass on a child's answer, or the message that it took too long if it was ended."""
    said = b""
    while part := os.read(back, 1 << 16):
        said += part
    os.close(back)
    os.waitpid(pid, 0)
    line = said if said.endswith(b"\n") else json.dumps({"id": number, "why": "silent"}).encode() + b"\n"
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()

"""The other ranks of a gang: their names, and how far they are."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mlp_hub.executors.kubernetes.rank.told import OwnPlan

_AGAIN_S, _PATIENT_S = 0.05, 0.5
"""Tuning: seconds until a name is asked for again, at first and at most: how soon ranks begin, for questions to the cluster's name servers."""
_LOOK_S = 1.0
"""Tuning: seconds between two looks at the others' reports: how soon a gang has ended, for reads of the volume."""
DONE = frozenset({"finished", "failed", "stopped"})


def named(own: OwnPlan, argv: Iterable[str], env: Mapping[str, str]) -> list[str]:
    """List the hosts in a rank's arguments and variables: it can need them from the first moment.

    It does not know the other hosts.
    """
    texts = [*argv, *env.values()]
    return [host for host in own.plan["hosts"] if any(host in text for text in texts)]


def resolve(hosts: Iterable[str], asked: Callable[[], bool]) -> None:
    """Return once each of these names has an address, or this rank was asked to end."""
    again = _AGAIN_S
    for host in hosts:
        while not asked():
            try:
                socket.getaddrinfo(host, None)
                break
            except OSError:
                time.sleep(again)
                again = min(_PATIENT_S, again * 1.2)


def answers(host: str, port: int) -> bool:
    """Whether a secure shell answers there."""
    with contextlib.suppress(OSError), socket.create_connection((host, port), 2.0) as server:
        server.settimeout(2.0)
        return server.recv(4) == b"SSH-"
    return False


def reported(own: OwnPlan, rank: int) -> dict[str, Any] | None:
    """Return the report of another rank about itself."""
    path = f"{own.plan['log']}/{own.plan['attempt']}.{rank}.json"
    with contextlib.suppress(OSError, ValueError), open(path, "rb") as file:
        found: dict[str, Any] = json.loads(file.read())
        return found
    return None


def failed(own: OwnPlan) -> int | None:
    """Return a rank that has failed."""
    every = (reported(own, rank) for rank in range(own.ranks) if rank != own.rank)
    return next((one["rank"] for one in every if one and one["state"] == "failed"), None)


def states(own: OwnPlan) -> set[str]:
    """Return in which states the ranks are, this one included."""
    os.listdir(own.plan["log"])  # a network's file system looks anew
    return {(reported(own, rank) or {}).get("state", "waiting") for rank in range(own.ranks)}


def linger(own: OwnPlan, seconds: float, asked: Callable[[], bool]) -> None:
    """Return once all others have ended, or `seconds` seconds are over."""
    until = time.monotonic() + seconds
    left = set(range(own.ranks)) - {own.rank}
    while left and time.monotonic() < until and not asked():
        os.listdir(own.plan["log"])  # a network's file system looks anew
        left = {rank for rank in left if (reported(own, rank) or {}).get("state") not in DONE}
        if left:
            time.sleep(min(_LOOK_S, max(0.0, until - time.monotonic())))

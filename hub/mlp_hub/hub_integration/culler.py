"""Ends notebook servers that nobody uses: jupyterhub-idle-culler, started by the hub as a service of it.

    python -m mlp_hub.hub_integration.culler HUB_PID HUB_SOCKET OPTION...

It asks the hub at its socket, where the hub listens for its own parts alone, and ends with the hub. After the wall clock was
put forward, or the machine slept, all that was noted earlier looks as idle as that: until it would be again, nothing is ended.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import jupyterhub_idle_culler
from jupyterhub_idle_culler import IdleCuller
from tornado.netutil import Resolver

from mlp_hub.api.edge.one_socket import OneSocket
from mlp_hub.sandbox.shim.linux import die_with_parent

JUMP_S = 30.0
"""Tuning: seconds by which the wall clock goes ahead of a steady one between two rounds, from which on that is a jump."""


class Patient:
    """A round of the culler, left out where the clock jumped: for as long as that, or a server's whole time, which is less."""

    def __init__(
        self,
        cull: Callable[..., Awaitable[Any]],
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cull, self._wall, self._steady = cull, wall, steady
        self._apart = wall() - steady()
        self._not_before = steady()

    async def __call__(self, *args: Any, **named: Any) -> None:
        """Do a round, or leave it out."""
        now, apart = self._steady(), self._wall() - self._steady()
        jumped, self._apart = apart - self._apart, apart
        if jumped > JUMP_S:
            whole = max(named.get("inactive_limit", 0), named.get("max_age", 0))
            self._not_before = now + min(jumped, whole)
        if now >= self._not_before:
            await self._cull(*args, **named)


def main(argv: list[str]) -> None:
    """Run until the hub ends."""
    hub, socket, *options = argv
    die_with_parent(int(hub))
    # the culler makes its own client, which takes whatever resolver is usual
    Resolver.configure(OneSocket, path=socket)
    jupyterhub_idle_culler.cull_idle = Patient(jupyterhub_idle_culler.cull_idle)
    IdleCuller.launch_instance(options)


if __name__ == "__main__":
    main(sys.argv[1:])

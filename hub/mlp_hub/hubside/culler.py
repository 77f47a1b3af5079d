"""Ends notebook servers that nobody uses: jupyterhub-idle-culler, started by the hub as a service of it.

    python -m mlp_hub.hubside.culler HUB_PID HUB_SOCKET OPTION...

It asks the hub at its socket, where the hub listens for its own parts alone, and ends with the hub.
"""

from __future__ import annotations

import sys

from jupyterhub_idle_culler import IdleCuller
from tornado.netutil import Resolver

from mlp_hub.api.hubclient import OneSocket
from mlp_hub.sandbox.shim.linux import die_with_parent


def main(argv: list[str]) -> None:
    """Run until the hub ends."""
    hub, socket, *options = argv
    die_with_parent(int(hub))
    # the culler makes its own client, which takes whatever resolver is usual
    Resolver.configure(OneSocket, path=socket)
    IdleCuller.launch_instance(options)


if __name__ == "__main__":
    main(sys.argv[1:])

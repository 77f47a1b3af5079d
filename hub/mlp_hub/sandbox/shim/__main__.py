"""Entry of the shim: `python3 -IS .../shim/__main__.py RUN_DIR READY_FD`, or `... --serve SOCKET_FD`.

By `... --try-slirp PROGRAM UID` the hub finds the way to run slirp4netns on this machine. It runs
without site-packages. The package's own directory is added last, so that nothing there can replace
the standard library. The package above is left empty: its own `__init__` has the hub's side, and each shim
would hold that, and pay for its pages at every fork.
"""

import sys

if __name__ == "__main__":
    if __package__ in (None, ""):
        from types import ModuleType

        sys.path.append(__file__.rsplit("/", 4)[0])
        above = ModuleType("mlp_hub.sandbox")
        above.__path__ = [__file__.rsplit("/", 2)[0]]
        sys.modules[above.__name__] = above
    if sys.argv[1] == "--serve":
        from mlp_hub.sandbox.shim.fork_server import serve

        serve(int(sys.argv[2]))
    elif sys.argv[1] == "--try-slirp":
        from mlp_hub.sandbox.shim.slirp import try_out

        try_out(sys.argv[2], int(sys.argv[3]))
    else:
        import os

        from mlp_hub.sandbox.shim.main import run

        if os.fork():  # the caller need not reap the shim some day
            os._exit(0)
        run(sys.argv[1], int(sys.argv[2]))

"""Entry of the shim: `python3 -IS .../shim/__main__.py RUN_DIR READY_FD`, or `... --serve SOCKET_FD`.

By `... --try-slirp PROGRAM UID` the hub finds out how slirp4netns can run on this machine.
It runs without site-packages; the package's own place is added last, so that nothing there can stand in for the
standard library.
"""

import sys

if __name__ == "__main__":
    if __package__ in (None, ""):
        sys.path.append(__file__.rsplit("/", 4)[0])
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

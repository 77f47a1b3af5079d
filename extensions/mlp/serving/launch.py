"""Beginning of a replica: its arguments, the socket that it listens on, its end."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence

from mlp.serving.errors import NoModel
from mlp.serving.relay import run_command

MODEL = "/model"
MOST_WAITING = 256
BAD_MODEL = 65
"""Exit status when the files are not a model that can be served: EX_DATAERR of sysexits."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run a replica until it is asked to stop; its last line is its error."""
    args = _parser().parse_args(argv)
    key = os.environ.pop("MLP_APP_KEY", "")
    try:
        listener = listen()
        if args.command:
            status = run_command(args.command, args.port, listener, key)
        else:
            status = _serve(args, listener, key)
    except NoModel as error:
        sys.stderr.write(f"ModelError: {error}\n")  # a line that the cause of a failed job is taken from
        status = BAD_MODEL
    sys.exit(status)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "mlp.serving", description="Serves a model, or runs a command that does."
    )
    parser.add_argument("--model-dir", default=MODEL, help="where the model's files are (/model)")
    parser.add_argument("--name", default="model", help="what requests call the model")
    parser.add_argument("--version", default="1", help="the version that it tells")
    parser.add_argument(
        "--command", default="", help="what runs in place of the server; PORT tells it where to listen"
    )
    parser.add_argument("--port", type=int, default=8080, help="the port at which the command listens (8080)")
    return parser


def listen() -> socket.socket:
    """Return the socket that requests come in by."""
    given = os.environ.pop("MLP_LISTEN_FD", None)
    if given is not None:
        listener = socket.socket(fileno=int(given))
        listener.set_inheritable(False)
        listener.setblocking(True)
        return listener
    path = os.environ.pop("MLP_APP_SOCKET", None)
    if path is not None:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
        listener.listen(MOST_WAITING)
        return listener
    # a pod's own network, of whichever family
    port, dual = int(os.environ.pop("MLP_APP_PORT", "8000")), socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual else socket.AF_INET
    return socket.create_server(("", port), family=family, backlog=MOST_WAITING, dualstack_ipv6=dual)


def _serve(args: argparse.Namespace, listener: socket.socket, key: str) -> int:
    # a model takes a while to load, and what it needs is imported only then
    from mlp.serving.loaders import load  # noqa: PLC0415
    from mlp.serving.server import ModelServer  # noqa: PLC0415

    model = load(args.model_dir)
    sys.stdout.write(f"{args.name} version {args.version}: {model.platform}, ready to answer\n")
    sys.stdout.flush()
    server = ModelServer(listener, model, args.name, args.version, key)
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    server.serve_forever(poll_interval=0.5)
    server.server_close()  # waits for the requests that are under way
    return 0

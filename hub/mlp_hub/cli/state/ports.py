"""Whether the public port can be had, and who has it if not."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

from mlp_hub.cli.errors import MachineFailure, UsageFailure
from mlp_hub.cli.state import plan
from mlp_language.render import say

_LISTEN = "0A"


def check_free(bind: str, port: int, home: Path) -> None:
    """Raise MachineFailure where the port cannot be opened, naming who holds it and `home`, the directory of this hub."""
    try:
        check_listens(bind, port)
    except socket.gaierror as error:
        raise UsageFailure(
            say(
                "MLP_BIND is {bind}, which is not an address of this machine: {strerror}",
                bind=bind,
                strerror=str(error.strerror),
            )
        ) from error
    except OSError as error:
        raise _explained(error, bind, port, home) from error


def check_listens(bind: str, port: int) -> None:
    """Raise OSError where the port cannot be opened, and its subclass `socket.gaierror` where `bind` is not an address."""
    family, kind, protocol, _, address = socket.getaddrinfo(bind, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(address)
        probe.listen(1)


def _explained(error: OSError, bind: str, port: int, home: Path) -> MachineFailure:
    if error.errno == errno.EADDRINUSE:
        by = owner(port)
        return MachineFailure(
            say("Port {port} is in use by {by}.", port=port, by=by)
            if by
            else say("Port {port} is in use.", port=port),
            say(
                "Stop it, or start this hub, whose MLP_HOME is {home}, on another port: MLP_PORT={port} make up",
                home=str(home),
                port=port + 1,
            ),
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return MachineFailure(
            say("Only root can open port {port}.", port=port),
            say("Choose a port above 1023 with MLP_PORT=PORT."),
        )
    return MachineFailure(
        say(
            "{bind}:{port} cannot be opened: {strerror}.", bind=bind, port=port, strerror=str(error.strerror)
        ),
        say("See MLP_BIND and MLP_PORT."),
    )


def owner(port: int) -> str:
    """Name the process that listens on a TCP port, as far as this user may see it; empty if unknown."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                inodes.add(f"socket:[{fields[9]}]")
    for entry in sorted(Path("/proc").iterdir()):
        if entry.name.isdigit() and _holds(entry, inodes):
            try:
                words = entry.joinpath("cmdline").read_bytes().split(b"\0")
            except OSError:
                words = []
            if other := _home_of_hub(int(entry.name)):
                return say(
                    "another MLP Hub, process {pid}, whose MLP_HOME is {home}", pid=entry.name, home=other
                )
            command = b" ".join(words[:3]).decode(errors="replace").strip()
            return f"process {entry.name} ({command[:80]})"
    return ""


def _home_of_hub(pid: int) -> str:
    """Return the MLP_HOME of the hub that a process belongs to; empty if it belongs to none, or /proc may not be read.

    All processes of a hub descend from its supervisor, whose working directory is MLP_HOME.
    """
    try:
        while pid > 1:
            process = Path("/proc", str(pid))
            if plan.SUPERVISES.encode() in process.joinpath("cmdline").read_bytes():
                return os.fsencode(process.joinpath("cwd").readlink()).decode(errors="replace")
            # as bytes: programs are called what they like
            pid = int(process.joinpath("stat").read_bytes().rpartition(b")")[2].split()[1])
    except OSError:
        pass
    return ""


def _holds(process: Path, inodes: set[str]) -> bool:
    try:
        return any(str(fd.readlink()) in inodes for fd in process.joinpath("fd").iterdir())
    except OSError:
        return False

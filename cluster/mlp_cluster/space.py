"""The namespaces in which a cluster runs: processes, mounts and network of its own, held by one process.

When that process is killed, the kernel kills all others and takes back mounts, addresses and rules: nothing has to be
found and undone, whatever state a cluster was left in. Nothing is written down either: who looks for a cluster looks
for the process.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from mlp_cluster import cgroups
from mlp_cluster.place import Place, base
from mlp_cluster.running import ClusterError, output, until

HIDDEN = ("/var/lib/cni", "/var/lib/kubelet", "/var/log/containers", "/tmp/k8s-webhook-server")  # noqa: S108
"""Paths that programs write to and that cannot be set: the cluster sees folders of its own there."""

_MADE = "mountpoints"
"""A folder of notes which of these were not on the machine before."""

_LOOKS = 20
"""So often in a row a program is not seen that has ended."""

_DETACHED = ["setsid", "--fork"]

PATIENCE = 180
"""Seconds until a program that runs and is not ready is given up: a busy machine is slow."""


class Space:
    """One cluster's namespaces."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def holder(self) -> int | None:
        """Return the process that holds them."""
        for pid, words in _commands():
            if len(words) == 2 and words[1] == self.place.name and Path(words[0]).name == "pause":
                return pid
        return None

    def whole(self) -> bool:
        """Say whether they are there with all that is made before a program starts; the kubeconfig is the last of it."""
        return self.place.kubeconfig.exists() and self.holder() is not None

    def make(self, pause: Path) -> None:
        """Make them, and the line to the host."""
        flags = "--pid --fork --mount --mount-proc --propagation=private --net"
        line = (
            f"setsid unshare {flags} {shlex.quote(str(pause))} {self.place.name} >/dev/null 2>&1 </dev/null &"
        )
        output(["sh", "-c", line])
        until("namespaces", lambda: self.holder() is not None, PATIENCE)
        self._mounts()
        self._network()
        cgroups.make(self.place.name)

    def _mounts(self) -> None:
        lines = ["mount --make-rshared /", "mount -t tmpfs -o mode=755 tmpfs /run"]
        for path in map(Path, HIDDEN):
            mine = self.place.folder / "hidden" / path.name
            mine.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                (base() / _MADE).mkdir(exist_ok=True)
                (base() / _MADE / path.name).touch()
                path.mkdir(parents=True)
            lines.append(f"mount --bind {shlex.quote(str(mine))} {path}")
        self.run(["sh", "-ec", "\n".join(lines)])

    def _network(self) -> None:
        place, device = self.place, self.place.name
        output(
            ["ip", "link", "add", device, "type", "veth", "peer", "name", "host", "netns", str(self.holder())]
        )
        output(["ip", "addr", "add", f"{place.outside}/30", "dev", device])
        output(["ip", "link", "set", device, "up"])
        lines = [
            "ip link set lo up",
            f"ip addr add {place.node}/32 dev lo",
            f"ip addr add {place.inside}/30 dev host",
            "ip link set host up",
            f"ip route add default via {place.outside}",
            "echo 1 >/proc/sys/net/ipv4/ip_forward",
            # rules for services are to hold also between pods of one bridge
            "echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables || true",
        ]
        self.run(["sh", "-ec", "\n".join(lines)])
        for network in place.networks:
            output(["ip", "route", "add", network, "via", place.inside])

    def command(self, argv: Sequence[str | Path]) -> list[str]:
        """Return a command that runs inside."""
        holder = self.holder()
        if holder is None:
            raise ClusterError("the cluster does not run: make cluster")
        return ["nsenter", f"--target={holder}", "--pid", "--mount", "--net", "--", *map(str, argv)]

    def run(self, argv: Sequence[str | Path], given: str | None = None) -> str:
        """Run a program inside to its end."""
        return output(self.command(argv), given=given)

    def start(self, name: str, argv: Sequence[str | Path]) -> None:
        """Start a program inside that goes on without us; its log is below the cluster's folder."""
        log = self.place.folder / "log" / f"{name}.log"
        log.parent.mkdir(exist_ok=True)
        # nothing of who starts it: some programs prefer a KUBECONFIG to what they are told
        env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.place.folder)}
        command, nothing = self.command([*_DETACHED, *argv]), subprocess.DEVNULL
        with log.open("ab") as out:
            subprocess.run(command, env=env, stdin=nothing, stdout=out, stderr=out, check=True)

    def last_words(self, name: str) -> str:
        """Return the end of a program's log, for who asks why it is not there."""
        log = self.place.folder / "log" / f"{name}.log"
        if not log.exists():
            return f"{name} has not begun"
        return "\n".join([*log.read_text(errors="replace").splitlines()[-15:], f"All of it: {log}"])

    def until(self, name: str, ready: Callable[[], bool]) -> None:
        """Wait until a program that was started is ready; raise with its last words where it never is."""
        missed = 0

        def found() -> bool:
            nonlocal missed
            if ready():
                return True
            # a process that begins another program has no name for a moment
            missed = 0 if name in self.running() else missed + 1
            if missed == _LOOKS:
                raise ClusterError(f"{name} has ended:\n{self.last_words(name)}")
            return False

        until(f"{name} is ready", found, PATIENCE, lambda: self.last_words(name))

    def running(self) -> dict[str, int]:
        """Return the programs that run inside, without those of pods, and their processes."""
        holder = self.holder()
        if holder is None:
            return {}
        ours = _namespace(holder)
        inside = [(pid, words) for pid, words in _commands() if words and _namespace(pid) == ours]
        return {Path(words[2 if words[:2] == _DETACHED else 0]).name: pid for pid, words in inside}

    def kill(self, name: str) -> None:
        """Kill a program inside."""
        pid = self.running().get(name)
        if pid is None:
            raise ClusterError(f"{name} does not run; there are {', '.join(sorted(self.running()))}")
        os.kill(pid, signal.SIGKILL)
        until(f"the end of {name}", lambda: self.running().get(name) != pid, 10)

    def destroy(self) -> None:
        """End all, and take all away that it left."""
        while (holder := self.holder()) is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(holder, signal.SIGKILL)
            until("the end of all processes", partial(_gone, holder), 60)
        subprocess.run(
            ["ip", "link", "del", self.place.name], capture_output=True, check=False
        )  # else soon by itself
        cgroups.remove(self.place.name)
        shutil.rmtree(self.place.folder, ignore_errors=True)
        if not any((base() / "running").glob("*")):  # another's mounts may be there
            for path in map(Path, HIDDEN):
                if (base() / _MADE / path.name).exists():
                    with contextlib.suppress(OSError):
                        path.rmdir()
                    (base() / _MADE / path.name).unlink()


def _gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def _commands() -> Iterator[tuple[int, list[str]]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().decode(errors="replace")
                yield int(entry.name), words.rstrip("\0").split("\0") if words else []


def _namespace(pid: int) -> str:
    with contextlib.suppress(OSError):
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    return ""

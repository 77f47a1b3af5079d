"""A cluster for the time of one command, of which nothing is left: whether the command ends, fails, or is killed with us.

Command and cluster run in process and mount namespaces of their own, which go with this process, and this process goes
with the one that called it. What is outside of them (folders, control groups) is removed in the end, or by the next
that comes.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from mlp_cluster.place import ROOT, alone, base, find
from mlp_cluster.running import ClusterError, say
from mlp_cluster.up import down, up

LOGS = ROOT / "build" / "cluster-logs"
"""Where the logs of the last passing cluster are kept."""

_INSIDE = "MLP_CLUSTER_INSIDE"
_LAST = 40
"""Lines of a program's log that are shown where the cluster did not start."""
_PR_SET_PDEATHSIG = 1

# a shell, because it waits for whatever process loses its parent
_FIRST = 'mount --bind "$0" /tmp && "$@"; exit $?'


def passing(command: Sequence[str], *, pods: bool) -> int:
    """Start a cluster, run the command beside it, and end both; return the command's status."""
    if os.environ.get(_INSIDE):
        return _inside(os.environ["CLUSTER_NAME"], command, pods=pods)
    _die_with_parent()
    name = f"run-{os.getpid()}"
    with _held(name) as files:
        again = [
            sys.executable,
            "-m",
            "mlp_cluster",
            "with",
            *([] if pods else ["--api-only"]),
            "--",
            *command,
        ]
        namespaces = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        started = ["setpriv", "--pdeathsig=KILL", *namespaces, "sh", "-c", _FIRST, str(files), *again]
        environ = {**os.environ, "CLUSTER_NAME": name, _INSIDE: "1"}
        return subprocess.run(started, env=environ, check=False).returncode


def _inside(name: str, command: Sequence[str], *, pods: bool) -> int:
    environ = {key: value for key, value in os.environ.items() if key not in {_INSIDE, "KUBECONFIG"}}
    try:
        up(name, pods=pods)
        return subprocess.run(list(command), env=environ, check=False).returncode
    except ClusterError:
        _show_logs(name)
        raise
    finally:
        _keep_logs(name)
        down(name)


def _die_with_parent() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


@contextlib.contextmanager
def _held(name: str) -> Iterator[Path]:
    """Have a folder for the files of /tmp, locked as long as this process lives; remove those of who died."""
    files = base() / "passing" / name
    with alone("passing"):
        collect()
        files.mkdir(parents=True)
        files.chmod(0o1777)
        lock = os.open(files, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield files
    finally:
        _remove(files)
        os.close(lock)


def collect() -> None:
    """Remove what is left of passing clusters whose command was killed."""
    for files in (base() / "passing").glob("*"):
        lock = os.open(files, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue  # its command runs
        finally:
            os.close(lock)
        say(f"removing {files.name}, whose command was killed")
        _remove(files)


def _remove(files: Path) -> None:
    down(files.name)
    shutil.rmtree(files, ignore_errors=True)
    for path in base().glob(f"{files.name}[.-]*"):  # its locks
        path.unlink(missing_ok=True)


def _keep_logs(name: str) -> None:
    shutil.rmtree(LOGS, ignore_errors=True)
    if place := find(name):
        with contextlib.suppress(OSError, shutil.Error):
            shutil.copytree(place.folder / "log", LOGS)


def _show_logs(name: str) -> None:
    place = find(name)
    for log in sorted((place.folder / "log").glob("*.log")) if place else []:
        lines = log.read_text(errors="replace").splitlines()[-_LAST:]
        print("\n".join([f"\n-- {log.name}", *lines]), flush=True)

"""gocryptfs as a program: makes an encrypted directory, mounts it, wraps its key again.

Keys go to it through a pipe. They are not among its arguments or in its environment, because others
can read both in /proc.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

from mlp_language.message import Message, msg

PATIENCE_S = 30.0
"""Safety: seconds in which a mount must be complete; it takes some 25 ms."""
LOOK_S = 0.005
"""Tuning: seconds between two looks whether it does: processor time, for how soon it can be used."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SERVES = b"Filesystem mounted and ready"
"""Given: its word that a mount serves."""
_COST = "10"
"""Given: the cheapest scrypt that it takes. The keys are 256 random bits, which no search goes through, so nothing need be slow."""


class GocryptfsError(OSError):
    """It could not do what was asked; says what it said."""


def lacking() -> Message | None:
    """Say what this machine lacks to encrypt, with the remedy; None where it has all."""
    if shutil.which("gocryptfs", path=_PATH) is None:
        return msg("gocryptfs is not installed here; as root: apt-get install gocryptfs fuse3")
    if shutil.which("fusermount3", path=_PATH) is None:
        return msg("fusermount3 is not installed here; as root: apt-get install fuse3")
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return msg(
            "/dev/fuse cannot be opened ({why}); load the kernel's module fuse, or give the container that device",
            why=error.strerror or "",
        )
    return None


def make(cipher: Path, key: str) -> None:
    """Make an encrypted directory, whole or not at all."""
    new = cipher.with_name(f".{cipher.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(mode=0o700, parents=True)
    _run(["-init", "-q", "-scryptn", _COST, str(new)], f"{key}\n")
    new.chmod(0o711)  # as the tree of all: its mode is that of the mount, and what is above it lets nobody in
    new.replace(cipher)


def rewrap(cipher: Path, old: str, new: str) -> None:
    """Change the key that opens a directory; do nothing where it is already changed.

    The wrapping of its inner key changes, and its files do not.
    """
    if opens(cipher, new):
        return
    _run(["-passwd", "-q", "-scryptn", _COST, str(cipher)], f"{old}\n{new}\n")


def opens(cipher: Path, key: str) -> bool:
    """Whether a key opens a directory."""
    program = shutil.which("gocryptfs-xray", path=_PATH)
    if program is None:
        raise GocryptfsError(2, "gocryptfs-xray is not installed")
    done = subprocess.run(
        [program, "-dumpmasterkey", str(cipher / "gocryptfs.conf")],
        input=f"{key}\n".encode(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"PATH": _PATH},
        check=False,
    )
    return done.returncode == 0


def mount(cipher: Path, plain: Path, key: str, log: Path) -> int:
    """Mount a directory; return the pid of its process, which outlives this one, once the mount serves.

    Raises `GocryptfsError`. A complete mount does not serve yet: the process then opens a file in it
    itself. A process that makes anything there before that would wait for it, and it for that process,
    for good. So this waits for its message. `log` is of this mount alone.
    """
    command = ["gocryptfs", "-fg", "-nosyslog", "-nodev", "-nosuid"]
    if os.geteuid() == 0:
        # tenants' programs have uids of their own; the kernel asks modes and owners as ever
        command.append("-allow_other")
    with log.open("wb") as said:
        process = subprocess.Popen(
            [*command, str(cipher), str(plain)],
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=said,
            env={"PATH": _PATH},
            cwd="/",
            start_new_session=True,
        )
    assert process.stdin is not None  # noqa: S101 - it was asked for
    with contextlib.suppress(BrokenPipeError), process.stdin:
        process.stdin.write(f"{key}\n".encode())
    until = time.monotonic() + PATIENCE_S
    while _SERVES not in (words := log.read_bytes()):
        if process.poll() is not None or time.monotonic() > until:
            process.kill()
            process.wait()
            unmount(plain, dead=True)
            text = " ".join(words.decode(errors="replace").split())[:500]
            raise GocryptfsError(5, f"gocryptfs could not mount: {text or 'it said nothing'}")
        time.sleep(LOOK_S)
    # for as long as both live, nobody else would take note of its end
    threading.Thread(target=process.wait, name="gocryptfs", daemon=True).start()
    return process.pid


def is_mounted(plain: Path) -> bool:
    """Return whether a mount exists there. Raises OSError (ENOTCONN) where its process is dead."""
    return os.stat(plain).st_dev != os.stat(plain.parent).st_dev  # noqa: PTH116


def flush(plain: Path) -> None:
    """Have all that programs wrote there, mapped pages too, written by the process of the mount."""
    subprocess.run(["sync", "-f", str(plain)], capture_output=True, env={"PATH": _PATH}, check=False)


def unmount(plain: Path, *, dead: bool = False) -> bool:
    """Take a mount away; False where files of it are open. One whose process is `dead` goes in any case."""
    command = ["fusermount3", "-u", *(["-z"] if dead else []), str(plain)]
    done = subprocess.run(command, capture_output=True, env={"PATH": _PATH}, check=False)
    return done.returncode == 0


def _run(arguments: list[str], given: str) -> None:
    done = subprocess.run(
        ["gocryptfs", "-nosyslog", *arguments],
        input=given.encode(),
        capture_output=True,
        env={"PATH": _PATH},
        cwd="/",
        check=False,
    )
    if done.returncode:
        words = " ".join((done.stdout + done.stderr).decode(errors="replace").split())[-300:]
        raise GocryptfsError(5, f"gocryptfs says: {words}")

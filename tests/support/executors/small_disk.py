"""A small file system of its own, so that tests can fill it to the last byte."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

KINDS = ("tmpfs", "ext4")


class SmallDisk:
    """What is mounted at `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._ballast = root / "ballast"

    def fill(self) -> None:
        """Take all there is, to the last byte."""
        with self._ballast.open("ab", buffering=0) as file:
            size = 1 << 20
            while size:
                try:
                    if file.write(bytes(size)) < size:
                        size //= 2
                    os.fsync(file.fileno())
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    size //= 2

    def free_bytes(self) -> int:
        """How much room there is."""
        found = os.statvfs(self.root)
        return found.f_bavail * found.f_frsize

    def is_full(self) -> bool:
        return self.free_bytes() == 0

    def free(self) -> None:
        """Give back what was taken."""
        self._ballast.unlink(missing_ok=True)


@contextlib.contextmanager
def small_disk(root: Path, mib: int, kind: str = "tmpfs") -> Iterator[SmallDisk]:
    """Mount one of `KINDS` with so much room, hand it out, unmount it; skip the test where the machine does not let us."""
    root.mkdir()
    if kind == "tmpfs":
        mount = ["mount", "-t", "tmpfs", "-o", f"size={mib}m,mode=755", "tmpfs", str(root)]
    else:
        image = root.with_name(f"{root.name}.img")
        with image.open("wb") as file:
            file.truncate(mib << 20)
        _run(["mkfs.ext4", "-q", "-m", "0", str(image)], kind)  # nothing is kept for root, who fills it here
        mount = ["mount", "-o", "loop", str(image), str(root)]
    _run(mount, kind)
    try:
        yield SmallDisk(root)
    finally:
        subprocess.run(["umount", "-l", str(root)], check=True)


def _run(command: list[str], kind: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", "") or str(error)
        pytest.skip(f"no small {kind} can be mounted on this machine: {said.strip()}")

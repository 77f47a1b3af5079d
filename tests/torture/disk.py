"""A small file system of its own for the state directory, which can be filled to the last byte and freed."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from pathlib import Path

SIZE = 2 << 30  # sparse: only what is written takes room


class Disk:
    """An ext4 in a file where loop devices are allowed, else a tmpfs, else (not root) a plain directory."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="torture-", dir="/tmp"))
        self.root.chmod(0o711)
        self.mount = self.root / "m"
        self.mount.mkdir(mode=0o711)
        self.image = self.root / "image"
        self.kind = "ext4" if self._loop() else "tmpfs" if self._tmpfs() else ""

    @property
    def home(self) -> Path:
        """Where the hub's state goes."""
        return self.mount / "home"

    @property
    def _filler(self) -> Path:
        return self.mount / "filler"

    def fill(self, leave: int = 0) -> None:
        """Leave so many bytes free, by blocks."""
        fd = os.open(self._filler, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            size, step = os.fstat(fd).st_size, 1 << 30
            while step >= 4096:
                try:
                    os.posix_fallocate(fd, size, step)
                    size += step
                except OSError:
                    step //= 2
            if leave:
                os.ftruncate(fd, max(0, os.fstat(fd).st_size - leave))
        finally:
            os.close(fd)

    def free(self) -> None:
        """Give the room back."""
        self._filler.unlink(missing_ok=True)

    def remove(self) -> str:
        """Unmount and remove it; return what held it back, empty when nothing did."""
        why = ""
        if self.kind:
            for _ in range(50):
                done = _run("umount", str(self.mount))
                if done.returncode == 0:
                    break
                time.sleep(0.1)
            else:
                why = done.stderr.strip()
                _run("umount", "-l", str(self.mount))
        _run("rm", "-rf", "--one-file-system", str(self.root))
        return why

    def _loop(self) -> bool:
        with self.image.open("wb") as file:
            file.truncate(SIZE)
        made = _run("mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=1,nodiscard", str(self.image))
        good = made.returncode == 0 and (
            _run("mount", "-o", "loop", str(self.image), str(self.mount)).returncode == 0
        )
        if good:
            self.mount.chmod(0o711)
        else:
            self.image.unlink()
        return good

    def _tmpfs(self) -> bool:
        return (
            _run("mount", "-t", "tmpfs", "-o", "size=600m,mode=0711", "tmpfs", str(self.mount)).returncode
            == 0
        )


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    with contextlib.suppress(FileNotFoundError):
        return subprocess.run(command, capture_output=True, text=True, check=False)
    return subprocess.CompletedProcess(command, 127, "", f"{command[0]} is not there")

"""Mounts of encrypted tenants: made when the files are needed, taken away when nobody uses them, made again where their process died.

Whoever mounts holds the tenant's lock of mounting, and whoever takes away the lock of its use (`roots`): so none is mounted twice.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from contextlib import AbstractContextManager
from pathlib import Path

from mlp_hub.isolation import gocryptfs
from mlp_hub.isolation.keys import KeyStore, locked, write_durably

ENDS_S = 10.0
"""Safety: seconds in which a process of a mount that was taken away must have ended: another one for the same files is not begun before."""


class Mounts:
    """Mounts below `state`: of encrypted directories, named by their tenants, below `cipher`."""

    def __init__(self, state: Path, cipher: Path, keys: KeyStore) -> None:
        self._state, self._cipher, self.keys = state, cipher, keys

    def plain(self, tenant: str) -> Path:
        """Where a tenant's files are seen."""
        return self._state / "plain" / tenant

    def cipher(self, tenant: str) -> Path:
        """Where they lie."""
        return self._cipher / tenant

    def make(self, tenant: str) -> None:
        """Make a key and an encrypted directory for a tenant that has none."""
        self.keys.ensure(tenant)
        self._cipher.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self.cipher(tenant).exists():
            gocryptfs.make(self.cipher(tenant), self.keys.keys(tenant)[0])

    def ready(self, tenant: str) -> Path:
        """Return where a tenant's files are seen, mounted. Raises OSError, `KeyUnknownError`."""
        plain = self.plain(tenant)
        if self._serves(tenant):
            return plain
        with self._mounting(tenant):
            if self._serves(tenant):
                return plain
            self._clear_away(tenant)
            self._mount(tenant, plain)
        return plain

    def rest(self, tenant: str) -> bool:
        """Take a mount away; whether it is gone. For who holds the lock of the tenant's use alone."""
        plain = self.plain(tenant)
        with self._mounting(tenant):
            if _stands(plain):
                gocryptfs.flush(plain)
                if not gocryptfs.unmount(plain):
                    return False
            self._clear_away(tenant)
            return True

    def mounted_tenants(self) -> list[str]:
        """Return the tenants whose files are mounted, or were when their process died."""
        with contextlib.suppress(FileNotFoundError):
            return sorted(
                entry.name
                for entry in os.scandir(self._state / "plain")
                if not entry.name.startswith(".") and _there(Path(entry.path))
            )
        return []

    def destroy(self, tenant: str) -> None:
        """Remove the key, without which nothing can be read any more, and then the encrypted directory, which nobody has mounted."""
        from shutil import rmtree  # noqa: PLC0415

        self.keys.forget(tenant)
        cipher = self.cipher(tenant)
        if cipher.exists():
            rmtree(cipher)
        with contextlib.suppress(FileNotFoundError):
            self.plain(tenant).rmdir()

    def rotate(self, tenant: str) -> None:
        """Wrap what encrypts a tenant's files by another key."""
        self.keys.rotate(tenant, lambda old, new: gocryptfs.rewrap(self.cipher(tenant), old, new))

    def _mount(self, tenant: str, plain: Path) -> None:
        plain.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
        plain.mkdir(mode=0o711, exist_ok=True)
        keys = self.keys.keys(tenant)
        key = keys[0]
        if len(keys) > 1 and not gocryptfs.opens(self.cipher(tenant), key):
            key = keys[1]  # it was being rotated
        pid = gocryptfs.mount(self.cipher(tenant), plain, key, plain.parent / f".{tenant}.log")
        write_durably(self._pid(tenant), f"{pid} {_started(pid)}")

    def _clear_away(self, tenant: str) -> None:
        """Remove the remains of a dead process, and kill one whose mount is gone.

        Other tenants' and other hubs' sandboxes that were made while the mount existed have it in the
        namespaces of their watching processes. So the mount would live, with the key, as long as they do.
        The process has already written all data that it was given.
        """
        plain = self.plain(tenant)
        if _there(plain):
            gocryptfs.unmount(plain, dead=True)
        try:
            pid, started = map(int, self._pid(tenant).read_text().split())
        except (OSError, ValueError):
            return
        until = time.monotonic() + ENDS_S
        if _started(pid) == started:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while _started(pid) == started:
            if time.monotonic() > until:
                raise OSError(errno.EBUSY, "gocryptfs still runs for these files, though nobody sees them")
            time.sleep(gocryptfs.LOOK_S)
        self._pid(tenant).unlink(missing_ok=True)

    def _serves(self, tenant: str) -> bool:
        """Return whether a mount exists and serves: its pid is stored after that."""
        return self._pid(tenant).exists() and _stands(self.plain(tenant))

    def _pid(self, tenant: str) -> Path:
        return self._state / "plain" / f".{tenant}.pid"

    def _mounting(self, tenant: str) -> AbstractContextManager[None]:
        return locked(self._state / "locks" / f"{tenant}.mount")


def _stands(plain: Path) -> bool:
    try:
        return gocryptfs.is_mounted(plain)
    except OSError:
        return False


def _there(plain: Path) -> bool:
    """Whether there is a mount, alive or dead."""
    try:
        return gocryptfs.is_mounted(plain)
    except OSError as error:
        return error.errno != errno.ENOENT


def _started(pid: int) -> int:
    """Return when a process began, in ticks since boot; 0 for one that is gone or has ended."""
    try:
        after = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if after[0] in "ZX" else int(after[19])

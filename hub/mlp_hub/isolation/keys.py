"""Keys of tenants with encrypted files: each in a separate file, wrapped by one master key of the hub.

The master key is a secret of the hub. A key leaves this process only through a pipe. Both rotations
can be killed at any point: a file holds the new key before anything needs it, and the old one until
nothing does.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from mlp_hub import durable

BYTES = 32
"""Given: bytes of a key of AES-256."""
_NONCE = 12


class KeyUnknownError(ValueError):
    """Error for a tenant without a key, or with one that none of the master keys opens."""


class KeyStore:
    """Wrapped keys in `directory`; `master` is the file of the master keys, the newest first: two while one is rotated."""

    def __init__(self, directory: Path, master: Path) -> None:
        self._directory, self._master = directory, master

    def ensure(self, tenant: str) -> None:
        """Make a key for a tenant that has none."""
        with self._alone():
            if not self._file(tenant).exists():
                self._keep(tenant, [secrets.token_hex(BYTES)])

    def keys(self, tenant: str) -> list[str]:
        """Return a tenant's keys, the newest first; a second one while it is rotated. Raises `KeyUnknownError`."""
        try:
            wrapped = durable.read_object(self._file(tenant), "keys")["keys"]
        except durable.UnreadableFile as error:
            raise KeyUnknownError(f"{error}; put it back from a backup") from error
        except OSError as error:
            raise KeyUnknownError(f"there is no key of tenant {tenant} in {self._directory}") from error
        return [self._unwrap(tenant, one) for one in wrapped]

    def forget(self, tenant: str) -> None:
        """Remove a tenant's key: files that are encrypted with it can never be read again."""
        with self._alone():
            self._file(tenant).unlink(missing_ok=True)

    def tenants(self) -> list[str]:
        """Return the tenants that have a key, by name."""
        with contextlib.suppress(FileNotFoundError):
            return sorted(path.stem for path in self._directory.glob("*.json"))
        return []

    def rotate(self, tenant: str, rewrap: Callable[[str, str], None]) -> None:
        """Give a tenant another key; `rewrap` has what the old one opens opened by the new one, and may be asked again."""
        with self._alone():
            keys = self.keys(tenant)
            new, old = (keys[0], keys[1]) if len(keys) > 1 else (secrets.token_hex(BYTES), keys[0])
            self._keep(tenant, [new, old])
            rewrap(old, new)
            self._keep(tenant, [new])

    def rotate_master(self) -> int:
        """Wrap all keys by another master key; return how many they are."""
        with self._alone():
            masters = self._masters()
            if len(masters) < 2:
                masters = [secrets.token_bytes(BYTES), *masters]
            self._keep_masters(masters)
            tenants = self.tenants()
            for tenant in tenants:
                self._keep(tenant, self.keys(tenant))
            self._keep_masters(masters[:1])
            return len(tenants)

    def _file(self, tenant: str) -> Path:
        return self._directory / f"{tenant}.json"

    def _keep(self, tenant: str, keys: list[str]) -> None:
        wrapped = [self._wrap(tenant, key) for key in keys]
        write_durably(self._file(tenant), json.dumps({"keys": wrapped}))

    def _wrap(self, tenant: str, key: str) -> str:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - most hubs need it never

        nonce = secrets.token_bytes(_NONCE)
        sealed = AESGCM(self._masters(make=True)[0]).encrypt(nonce, key.encode(), tenant.encode())
        return base64.b64encode(nonce + sealed).decode()

    def _unwrap(self, tenant: str, wrapped: str) -> str:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

        raw = base64.b64decode(wrapped)
        for master in self._masters():
            with contextlib.suppress(InvalidTag):
                return AESGCM(master).decrypt(raw[:_NONCE], raw[_NONCE:], tenant.encode()).decode()
        raise KeyUnknownError(
            f"the key of tenant {tenant} was wrapped by another master key than {self._master} has"
        )

    def _masters(self, *, make: bool = False) -> list[bytes]:
        try:
            content = self._master.read_bytes()
        except FileNotFoundError:
            if not make:
                raise KeyUnknownError(f"the master key {self._master} is not there") from None
        else:
            with contextlib.suppress(ValueError):  # another one would open nothing that there is
                if found := [bytes.fromhex(line) for line in content.decode().split()]:
                    return found
            raise KeyUnknownError(
                f"the master key {self._master} cannot be read: it holds {durable.what_it_holds(content)}; put it back from a backup"
            )
        masters = [secrets.token_bytes(BYTES)]
        self._keep_masters(masters)
        return masters

    def _keep_masters(self, masters: list[bytes]) -> None:
        write_durably(self._master, "".join(f"{master.hex()}\n" for master in masters))

    def _alone(self) -> AbstractContextManager[None]:
        return locked(self._directory / "lock")


@contextlib.contextmanager
def locked(path: Path, how: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Hold the kernel's lock of a file of ours, which is made where it is missing. BlockingIOError with LOCK_NB where another has it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    try:
        fd = os.open(path, flags, 0o600)
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(path, flags, 0o600)
    try:
        fcntl.flock(fd, how)
        yield
    finally:
        os.close(fd)


def write_durably(path: Path, text: str) -> None:
    """Write a file of ours, readable by us alone, so that after any death it is the old one or the new one."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    durable.write(path, text)

"""Single source for the place of a tenant's files, and the locks that keep them there during use.

`places/TENANT.json` records how a tenant's files are kept. Without it they are in the common tree.
A user of files holds the tenant's lock shared. A process that moves them first writes that to the
file, and then waits for a moment without holders of the lock. From then on nobody changes the
files. The locks are the kernel's, and end with the processes that hold them.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from mlp_hub import durable
from mlp_hub.domain.errors import OutOfReach
from mlp_hub.domain.stored.storage import ARRIVING
from mlp_hub.domain.tenants.tenant import DEDICATED, ENCRYPTED, Isolation
from mlp_hub.isolation import gocryptfs
from mlp_hub.isolation.keys import KeyStore, KeyUnknownError, locked, write_durably
from mlp_hub.isolation.mounts import Mounts
from mlp_hub.safe_path import DirHandle
from mlp_language.message import msg, verbatim

MARK = ".mlp-tenant"
"""Contract: the file in a dedicated root that says whose it is: a volume that is not mounted has none."""


@dataclass(frozen=True, slots=True)
class RootEntry:
    """How a tenant's files are kept now; `held` while they are moved, and nobody may change them."""

    kept: Isolation = field(default_factory=Isolation)
    held: bool = False


class TenantRoots:
    """Roots of tenants' trees; `shared` is the common one; without `state` it is the only one."""

    def __init__(self, shared: Path, state: Path | None = None, mounts: Mounts | None = None) -> None:
        self.shared, self.state, self.mounts = shared, state, mounts

    def entry(self, tenant: str) -> RootEntry:
        """Return how a tenant's files are kept now."""
        if not tenant or self.state is None:
            return RootEntry()
        try:
            found = durable.read_object(f"{self.state}/places/{tenant}.json", "grade", "root", "held")
        except FileNotFoundError:
            return RootEntry()
        except durable.UnreadableFile as torn:
            # the tree of all would be the wrong one for its files; who leads writes it anew, as the database has it
            raise OutOfReach(
                msg(
                    "the file {path}, which stores where files of team {tenant} are, cannot be read: it holds {what}. The service writes it again at its next start",
                    path=torn.path,
                    tenant=tenant,
                    what=torn.what,
                )
            ) from torn
        return RootEntry(Isolation(found["grade"], found["root"]), found["held"])

    def path(self, tenant: str) -> Path:
        """Return the root of a tenant's tree, whether or not it is there just now."""
        return self.path_of(tenant, self.entry(tenant).kept)

    def path_of(self, tenant: str, kept: Isolation) -> Path:
        """Return the root that a tenant's tree has when it is kept so."""
        if kept.grade == DEDICATED:
            return Path(kept.root)
        if kept.grade == ENCRYPTED:
            return self._mounts.plain(tenant)
        return self.shared

    @contextlib.contextmanager
    def using(self, tenant: str, *, write: bool = False) -> Iterator[Path]:
        """Yield the root of a tenant's tree, which is there and stays until the end; with `write` what lies there may be changed.

        Raises `OutOfReach` where it is not there, or to `write` while it is moved.
        """
        if not tenant or self.state is None:
            yield self.shared
            return
        with self._locked(tenant, fcntl.LOCK_SH):
            entry = self.entry(tenant)
            if write and entry.held:
                raise OutOfReach(
                    msg(
                        "the files of team {tenant} are being moved; changes of them wait until the move is done",
                        tenant=tenant,
                    )
                )
            try:
                yield self.ready(tenant, entry.kept)
            finally:
                if entry.kept.grade == ENCRYPTED:
                    os.utime(self.state / "locks" / tenant)  # from now on it may be idle

    def ready(self, tenant: str, kept: Isolation) -> Path:
        """Return the root of a tenant's tree kept so, mounted if it is encrypted. Raises `OutOfReach`."""
        path = self.path_of(tenant, kept)
        if kept.grade == DEDICATED and not self.is_marked(tenant, path):
            raise OutOfReach(
                msg(
                    "the root {root} of team {tenant} is missing, or belongs to another team; mount its volume to continue",
                    root=str(path),
                    tenant=tenant,
                )
            )
        if kept.grade == ENCRYPTED:
            try:
                return self._mounts.ready(tenant)
            except (OSError, KeyUnknownError) as error:
                why = gocryptfs.lacking() or verbatim(str(error))
                raise OutOfReach(
                    msg(
                        "the encrypted files of team {tenant} cannot be opened: {why}",
                        tenant=tenant,
                        why=why,
                    )
                ) from error
        return path

    # ------------------------------------------------------------ for who moves them

    def enter(self, tenant: str, entry: RootEntry) -> None:
        """Say how a tenant's files are kept from now on."""
        assert self.state is not None  # noqa: S101 - who moves has one
        file = self.state / "places" / f"{tenant}.json"
        if entry == RootEntry():
            file.unlink(missing_ok=True)
            return
        write_durably(
            file, json.dumps({"grade": entry.kept.grade, "root": entry.kept.root, "held": entry.held})
        )

    def tenants(self) -> list[str]:
        """Return the tenants of which anything is said."""
        if self.state is None:
            return []
        return sorted(path.stem for path in (self.state / "places").glob("*.json"))

    def entries(self) -> dict[str, RootEntry | None]:
        """Return the entries of these tenants; None for an entry that cannot be read."""
        found: dict[str, RootEntry | None] = {}
        for tenant in self.tenants():
            try:
                found[tenant] = self.entry(tenant)
            except OutOfReach:
                found[tenant] = None
        return found

    def kept(self) -> dict[str, Isolation]:
        """Return how the files of these tenants are kept now, where that can be read."""
        return {tenant: entry.kept for tenant, entry in self.entries().items() if entry is not None}

    @contextlib.contextmanager
    def alone(self, tenant: str) -> Iterator[bool]:
        """Yield whether nobody uses the files of a tenant; where nobody does, nobody begins before the end."""
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(self._locked(tenant, fcntl.LOCK_EX | fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
                return
            yield True

    def prepare(self, tenant: str, kept: Isolation) -> None:
        """Make the root of a tenant's tree where it is missing. Raises OSError."""
        if kept.grade == ENCRYPTED:
            self._mounts.make(tenant)
        elif kept.grade == DEDICATED and not self.is_marked(tenant, Path(kept.root)):
            root = Path(kept.root)
            root.mkdir(mode=0o711, parents=True, exist_ok=True)
            with DirHandle.at(root) as folder:
                with folder.entries() as entries:
                    if next(entries, None) is not None:
                        raise FileExistsError(17, "it is not empty", kept.root)
                with folder.create(MARK, 0o600) as mark:
                    mark.write(self._mark(tenant))
                os.fsync(folder.fd)

    def dissolve(self, tenant: str, kept: Isolation) -> None:
        """Remove the root of a tenant's tree with the platform's files in it.

        Nobody uses it, and it has no files of the tenant.
        """
        if kept.grade == ENCRYPTED:
            if not self._mounts.rest(tenant):
                raise OSError(16, "files are still open", str(self.path_of(tenant, kept)))
            self._mounts.destroy(tenant)
        elif kept.grade == DEDICATED and self.is_marked(tenant, Path(kept.root)):
            with DirHandle.at(kept.root) as folder:
                _remove_empty(folder)
                folder.remove(MARK)
            with contextlib.suppress(OSError):  # a volume stays
                Path(kept.root).rmdir()

    def rest(self, tenant: str, idle_s: float = 0.0) -> bool:
        """Unmount the files of a tenant that nobody used for `idle_s` seconds; return whether no mount is left."""
        with self.alone(tenant) as alone:
            return alone and self._idle_s(tenant) >= idle_s and self._mounts.rest(tenant)

    def _idle_s(self, tenant: str) -> float:
        assert self.state is not None  # noqa: S101 - there is a mount
        return time.time() - (self.state / "locks" / tenant).stat().st_mtime

    @property
    def _mounts(self) -> Mounts:
        assert self.mounts is not None  # noqa: S101 - only where there are none no tenant is encrypted
        return self.mounts

    def _mark(self, tenant: str) -> bytes:
        assert self.state is not None  # noqa: S101 - as above
        file = self.state / "id"
        if not file.exists():
            write_durably(file, secrets.token_hex(16))
        content = file.read_bytes()
        if not content.isalnum():
            what = durable.what_it_holds(content)
            raise OSError(errno.EIO, f"it holds {what}; put it back from a backup", str(file))
        return f"{tenant} {content.decode()}\n".encode()

    def is_marked(self, tenant: str, root: Path) -> bool:
        """Whether a directory is the root of this tenant of this hub."""
        try:
            with DirHandle.at(root) as folder, folder.read(MARK) as mark:
                return mark.read(1000) == self._mark(tenant)
        except OSError:
            return False

    def _locked(self, tenant: str, how: int) -> contextlib.AbstractContextManager[None]:
        assert self.state is not None  # noqa: S101 - as above
        return locked(self.state / "locks" / tenant, how)


def tenant_roots(shared: Path, state: Path, master: Path) -> TenantRoots:
    """Return the roots of a hub.

    `shared` is the common tree, `state` the directory of the tenants' entries, and `master` wraps keys.
    """
    return TenantRoots(shared, state, Mounts(state, shared / "encrypted", KeyStore(state / "keys", master)))


class HubPaths(Protocol):
    """Where a hub has its files, as its settings say."""

    @property
    def data_dir(self) -> Path: ...

    @property
    def isolation_dir(self) -> Path: ...

    @property
    def master_key_file(self) -> Path: ...


def roots_of(paths: HubPaths) -> TenantRoots:
    """Return the roots of the hub whose files are there."""
    return tenant_roots(paths.data_dir, paths.isolation_dir, paths.master_key_file)


def _remove_empty(folder: DirHandle) -> None:
    """Remove directories of the platform's that nothing is left in: those of kinds, and in them those of users."""
    with folder.entries() as entries:
        kinds = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    for kind in kinds:
        with folder.inside(kind) as inner, inner.entries() as entries:
            for entry in list(entries):
                with contextlib.suppress(OSError), inner.inside(entry.name) as mine:
                    mine.remove_folder(ARRIVING)
                with contextlib.suppress(OSError):
                    (inner.remove_folder if entry.is_dir(follow_symlinks=False) else inner.remove)(entry.name)
        with contextlib.suppress(OSError):
            folder.remove_folder(kind)

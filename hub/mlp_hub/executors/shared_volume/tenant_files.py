"""Trees of tenants' files that are mounted here, of each grade of isolation: shared, dedicated and encrypted."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ParamSpec, TypeVar

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.tenants.tenant import DEDICATED, ENCRYPTED, SHARED, Isolation
from mlp_hub.executors.places import Belonging
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.executors.shared_volume.fence import Acting
from mlp_hub.executors.shared_volume.trees import tree_copy
from mlp_hub.executors.shared_volume.trees.removal import remove_directory_in
from mlp_hub.executors.tenant_files import Crossing, MovedWrongError, TreeRoom
from mlp_hub.isolation import RootEntry, lacking
from mlp_hub.isolation.roots import MARK
from mlp_hub.safe_path import DirHandle
from mlp_language.message import Message, msg

MOVED = 2
"""Tuning: tenants that are moved at a time: more at once, for the disk that jobs write to as well."""
UNREADABLE = Isolation(grade="unreadable")
"""Isolation of a tenant whose file cannot be read: no tenant has it, so the database's one is rewritten."""
P = ParamSpec("P")
T = TypeVar("T")


class SharedVolumeTenantFiles:
    """Trees below `directories`; `platform` are paths that no tenant's root may lie in or above."""

    def __init__(self, directories: Directories, fence: Acting, platform: Sequence[Path] = ()) -> None:
        self._directories, self._fence, self._platform = directories, fence, platform
        self._roots = directories.roots
        self._movers = ThreadPoolExecutor(MOVED, "move")

    async def check(self, tenant: str, kept: Isolation, others: Mapping[str, Isolation]) -> None:
        """Refuse what cannot be had here."""
        await asyncio.to_thread(self._check, tenant, kept, others)

    async def enter(self, tenant: str, kept: Isolation, *, held: bool, epoch: int) -> None:
        """Have all look there."""
        await self._act(epoch, self._roots.enter, tenant, RootEntry(kept, held))

    async def entered(self) -> Mapping[str, tuple[Isolation, bool]]:
        """Return the recorded isolation of tenants."""

        def look() -> dict[str, tuple[Isolation, bool]]:
            return {
                tenant: (UNREADABLE, True) if entry is None else (entry.kept, entry.held)
                for tenant, entry in self._roots.entries().items()
            }

        return await asyncio.to_thread(look)

    async def is_quiet(self, tenant: str) -> bool:
        """Whether nobody is at its files."""

        def look() -> bool:
            with self._roots.alone(tenant) as alone:
                return alone

        return await asyncio.to_thread(look)

    async def room(self, way: Crossing, what: Iterable[Belonging], epoch: int) -> TreeRoom:
        """Make the new tree, and add up."""
        return await self._act(epoch, self._room, way, list(what))

    async def copy(
        self,
        way: Crossing,
        what: Sequence[Belonging],
        epoch: int,
        check_cancelled: Callable[[], None],
        did: Callable[[int], None],
    ) -> None:
        """Copy."""
        await self._act(epoch, self._each, way, what, tree_copy.copy, check_cancelled, did, make=True)

    async def compare(
        self,
        way: Crossing,
        what: Sequence[Belonging],
        epoch: int,
        check_cancelled: Callable[[], None],
        did: Callable[[int], None],
    ) -> None:
        """Compare."""

        def work() -> None:
            self._each(way, what, tree_copy.compare, check_cancelled, did, make=False)
            os.sync()

        await self._act(epoch, work)

    async def dissolve(
        self,
        tenant: str,
        kept: Isolation,
        what: Sequence[Belonging],
        epoch: int,
        check_cancelled: Callable[[], None],
    ) -> None:
        """Remove."""
        await self._act(epoch, self._dissolve, tenant, kept, what, check_cancelled)

    async def rotate(self, tenant: str, epoch: int) -> None:
        """Give a tenant another key."""
        mounts = self._roots.mounts
        assert mounts is not None  # noqa: S101 - there is an encrypted tenant
        await self._act(epoch, mounts.rotate, tenant)

    async def mounted(self) -> Sequence[str]:
        """Return the tenants with a mount."""
        mounts = self._roots.mounts
        return [] if mounts is None else await asyncio.to_thread(mounts.mounted_tenants)

    async def rest(self, tenant: str, idle_s: float) -> bool:
        """Take a mount away."""
        return await asyncio.to_thread(self._roots.rest, tenant, idle_s)

    async def _act(self, epoch: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        def act() -> T:
            with self._fence.acting(epoch):
                return work(*args, **kwargs)

        return await asyncio.get_running_loop().run_in_executor(self._movers, act)

    # ------------------------------------------------------------- in threads

    def _check(self, tenant: str, kept: Isolation, others: Mapping[str, Isolation]) -> None:
        if kept.grade != SHARED and self._roots.state is None:
            raise Refused(
                Reason.INVALID, msg("isolation {grade} is not possible here; choose shared", grade=kept.grade)
            )
        if kept.grade == ENCRYPTED and (why := lacking()) is not None:
            raise Refused(
                Reason.INVALID, msg("isolation encrypted is not possible on this machine: {why}", why=why)
            )
        if kept.grade == DEDICATED:
            theirs = [(t, Path(k.root)) for t, k in others.items() if t != tenant and k.grade == DEDICATED]
            if (wrong := self._wrong_root(tenant, kept.root, theirs)) is not None:
                raise Refused(
                    Reason.INVALID,
                    msg(
                        "data_root {root} cannot be the root of {tenant}: {why}",
                        root=kept.root,
                        tenant=tenant,
                        why=wrong,
                    ),
                )

    def _wrong_root(self, tenant: str, path: str, others: Sequence[tuple[str, Path]]) -> Message | None:
        root = Path(path)
        if (
            not root.is_absolute()
            or path != str(root)
            or ".." in root.parts
            or "\0" in path
            or len(root.parts) < 2
        ):
            return msg("give an absolute path without .., such as /srv/tenants/red")
        for taken in self._platform:
            if _overlap(root, taken.resolve()):
                return msg(
                    "it is inside the hub's own files at {path}, or contains them; choose a separate place",
                    path=str(taken),
                )
        for other, theirs in others:
            if _overlap(root, theirs):
                return msg(
                    "it is inside the root of team {other}, or contains it; choose a separate place",
                    other=other,
                )
        return _wrong_way(root) or self._wrong_content(tenant, root)

    def _wrong_content(self, tenant: str, root: Path) -> Message | None:
        try:
            with DirHandle.at(root) as folder, folder.entries() as entries:
                names = {entry.name for entry in entries} - {"lost+found"}
        except FileNotFoundError:
            return None
        except OSError as error:
            return msg("it cannot be used ({why})", why=error.strerror or "")
        if names and not (MARK in names and self._roots.is_marked(tenant, root)):
            return msg("it is not empty; name an empty directory, or one that can be made")
        return None if os.access(root, os.W_OK | os.X_OK) else msg("the hub may not write there")

    def _tree(self, tenant: str, kept: Isolation) -> DirHandle:
        return DirHandle.at(self._roots.ready(tenant, kept))

    def _room(self, way: Crossing, what: Sequence[Belonging]) -> TreeRoom:
        self._roots.prepare(way.tenant, way.new)
        needed = 0
        with self._tree(way.tenant, way.old) as source:
            for names in self._all_below(what):
                with contextlib.suppress(FileNotFoundError), source.deep_inside(names) as folder:
                    needed += tree_copy.added_up(folder, lambda: None)
        with self._tree(way.tenant, way.new) as target:
            found = os.fstatvfs(target.fd)
        return TreeRoom(needed, found.f_bavail * found.f_frsize)

    def _each(
        self,
        way: Crossing,
        what: Sequence[Belonging],
        work: Callable[[DirHandle, DirHandle, tree_copy.Pass], None],
        check_cancelled: Callable[[], None],
        did: Callable[[int], None],
        *,
        make: bool,
    ) -> None:
        with self._tree(way.tenant, way.old) as source, self._tree(way.tenant, way.new) as target:
            for names in self._all_below(what):
                with contextlib.ExitStack() as held:
                    try:
                        folder = held.enter_context(source.deep_inside(names))
                    except FileNotFoundError:
                        if not make and _there(target, names):
                            raise MovedWrongError(
                                msg("{path} is not the same in both places", path="/".join(names))
                            ) from None
                        continue  # nothing was ever written for it
                    if make:
                        _shelf(source, target, names)
                    there = held.enter_context(target.deep_inside(names))
                    work(folder, there, tree_copy.Pass(check_cancelled, did))

    def _dissolve(
        self, tenant: str, kept: Isolation, what: Sequence[Belonging], check_cancelled: Callable[[], None]
    ) -> None:
        if not self._exists(tenant, kept):
            return
        if kept.grade != ENCRYPTED:  # there the key goes, and with it all
            with self._tree(tenant, kept) as tree:
                for *above, name in self._all_below(what):
                    with contextlib.suppress(FileNotFoundError), tree.deep_inside(above) as shelf:
                        remove_directory_in(shelf, name, check_cancelled)
        self._roots.dissolve(tenant, kept)

    def _all_below(self, what: Iterable[Belonging]) -> Iterator[tuple[str, ...]]:
        for one in what:
            yield from self._directories.all_below(one)

    def _exists(self, tenant: str, kept: Isolation) -> bool:
        if kept.grade == DEDICATED:
            return self._roots.is_marked(tenant, Path(kept.root))
        return True


def _overlap(one: Path, other: Path) -> bool:
    return one == other or one in other.parents or other in one.parents


def _wrong_way(root: Path) -> Message | None:
    """Say what is wrong with the directories on the way to a root: links, and those that others may exchange."""
    with contextlib.ExitStack() as held:
        here = held.enter_context(DirHandle.at("/"))
        for name in root.parts[1:]:
            found = os.fstat(here.fd)
            if found.st_uid not in (0, os.geteuid()) or (
                found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX
            ):
                return msg(
                    "others may change a directory on the way to it; choose a way that belongs only to root or the hub"
                )
            try:
                here = held.enter_context(here.inside(name))
            except FileNotFoundError:
                may = os.access(f"/proc/self/fd/{here.fd}", os.W_OK)
                return None if may else msg("the hub may not make it there")
            except OSError:
                return msg(
                    "{name} on the way to it is a link or not a directory; name the real place", name=name
                )
        if os.fstat(here.fd).st_uid not in (0, os.geteuid()):
            return msg("it belongs to a user other than root and the hub")
    return None


def _there(tree: DirHandle, names: Sequence[str]) -> bool:
    try:
        with tree.deep_inside(names):
            return True
    except FileNotFoundError:
        return False


def _shelf(source: DirHandle, target: DirHandle, names: Sequence[str]) -> None:
    """Make the directories above something as they are in the other tree; the platform's, so nobody puts a link there."""
    here, there = source, target
    with contextlib.ExitStack() as held:
        for name in names:
            here = held.enter_context(here.inside(name))
            there = held.enter_context(there.inside(name, make=0o700))
            found = os.fstat(here.fd)
            if os.geteuid() == 0:
                os.fchown(there.fd, found.st_uid, found.st_gid)
            os.fchmod(there.fd, stat.S_IMODE(found.st_mode))

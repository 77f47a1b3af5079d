"""The workspace of files that are mounted here; all looking, reading and removing is done in threads."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from mlp_hub.domain.stored.model import ModelFormat
from mlp_hub.executors import scripts
from mlp_hub.executors.places import home_mount
from mlp_hub.executors.shared_volume import spool
from mlp_hub.executors.shared_volume.checkpoints import newest_checkpoint
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.executors.shared_volume.fence import Acting
from mlp_hub.executors.shared_volume.fetch import starter
from mlp_hub.executors.shared_volume.files import SharedVolumeFile, list_directory, open_file
from mlp_hub.executors.shared_volume.manifest import manifest_of
from mlp_hub.executors.shared_volume.models.detector_client import ModelLooks
from mlp_hub.executors.shared_volume.trees import file_copy
from mlp_hub.executors.shared_volume.trees.removal import remove_directory, turn_of
from mlp_hub.executors.shared_volume.trees.sizes import charge_of, measure, measured, space_of
from mlp_hub.executors.tenant_files import TenantFiles
from mlp_hub.executors.turns import TimeSlices
from mlp_hub.executors.workspace import (
    FETCHES,
    Contents,
    DirectoryPage,
    Extent,
    FetchSteps,
    FoundEntry,
    JobRun,
    OpenSource,
    Place,
    Size,
    Sizes,
    SourceAsk,
    Space,
    SpoolBatch,
    SpoolLot,
    StoredPlace,
)
from mlp_hub.pools import FairPool
from mlp_hub.shelves import ensure_stored

P = ParamSpec("P")
T = TypeVar("T")
COPIES = 2
"""Tuning: models that are copied at a time: more at once, for the disk that jobs write to as well."""
MOST_REMOVED = 50_000
"""Tuning: files of a stored item that are removed in one turn, so that an owner cannot block a thread.

The owner can make other files as fast.
"""
FILES = 8
"""Tuning: threads in which files of users are listed, opened and looked at."""
FILES_OF_USER = 2
"""Safety: of these, such as work for one user at a time."""
SPOOLS = 2
"""Tuning: threads that read what jobs spooled, one for each user."""
CHARGED = 4
"""Tuning: directories that are measured to the end at a time: a huge one delays fewer others, for the disk that jobs write to as well."""


class SharedVolumeWorkspace:
    """Files of users and jobs below these directories; removals act under the executor's `fence`."""

    def __init__(
        self,
        directories: Directories,
        fence: Acting,
        *,
        measures: bool = True,
        tenants: TenantFiles | None = None,
    ) -> None:
        self.directories = directories
        self.tenants = tenants
        self.measures = measures
        self._fence = fence
        # each its own, since they may take minutes, and others start jobs meanwhile
        self._eraser = ThreadPoolExecutor(thread_name_prefix="erase")
        self._copier = ThreadPoolExecutor(COPIES, "copy")
        self._fetcher = ThreadPoolExecutor(FETCHES, "fetch")
        self._meter = ThreadPoolExecutor(1, "sizes")
        self._charger = FairPool("charge", CHARGED, 1)
        self._turns: TimeSlices[Place, Size] = TimeSlices()
        # of each user a few, so that one whose disk is slow, or who has huge directories, holds up nobody
        self._files = FairPool("files", FILES, FILES_OF_USER)
        self._spools = FairPool("spools", SPOOLS, 1)
        self._looks = ModelLooks(self._files)

    async def find_entry(self, user: str, entry: str) -> FoundEntry:
        """Look for a user's script, or directory, by its path below the home or as their programs see it."""
        seen_at, home = home_mount(user), self.directories.home(user)
        path = entry
        for prefix in ("~/", f"{seen_at}/", f"{home}/"):
            path = path.removeprefix(prefix)
        return await self._files.run(user, scripts.find, home, path, seen_at)

    async def newest_checkpoint(self, of: JobRun) -> float | None:
        """Return when the newest file among the run's checkpoints was written."""
        return await self._files.run(of.user, self._with, of, newest_checkpoint)

    async def spooled(
        self, of: JobRun, after: Callable[[], Awaitable[Mapping[str, int]]]
    ) -> AsyncIterator[SpoolBatch]:
        """Yield the points that the run's processes spooled; their files stay, since their writers know no reader."""
        if not await self._spools.run(of.user, self._with, of, spool.sources):
            return
        known = await after()
        allowance = spool.ByteAllowance()
        lost: dict[str, int | None] = {}
        lots: list[Iterator[SpoolLot]] = []

        def more(path: Path) -> SpoolLot | None:
            if not lots:
                lots.append(spool.read_all(path, known, allowance, lost))
            return next(lots[0], None)

        while (lot := await self._spools.run(of.user, self._with, of, more)) is not None:
            yield SpoolBatch(lot)
        if allowance.left <= 0 or lost:
            yield SpoolBatch([], spool.MOST_BYTES if allowance.left <= 0 else None, lost)

    async def files(self, of: Place | StoredPlace, path: str, after: str, limit: int) -> DirectoryPage:
        """List a directory of a run, a home or something stored."""
        return await self._files.run(of.user, self._with, of, list_directory, path, after, limit)

    async def open_file(self, of: Place | StoredPlace, path: str, head: int = 0) -> SharedVolumeFile:
        """Open a plain file of a run, a home or something stored."""
        found = await self._files.run(of.user, self._with, of, open_file, path, head)
        found.threads = partial(self._files.run, of.user)
        return found

    async def erase(self, of: Place, epoch: int, check_cancelled: Callable[[], None]) -> None:
        """Remove a run's directory with its log, or a home."""

        def remove() -> None:
            with self._fence.acting(epoch), self.directories.using(of, write=True) as path:
                remove_directory(path, check_cancelled)

        await asyncio.get_running_loop().run_in_executor(self._eraser, remove)

    async def disk_size(self, of: Place) -> int:
        """Measure what a run's directory or a home takes on the disk."""
        return await self._charger.run(of.user, self._with, of, measured)

    async def stored_size(self, of: StoredPlace) -> int:
        """Add up the lengths of the files of something that is stored."""

        def measure() -> int:
            with self.directories.using(of):
                return charge_of(self.directories.all_of(of))

        return await self._charger.run(of.user, measure)

    async def manifest(self, of: StoredPlace) -> Contents | None:
        """Tell what the files of something stored are."""
        return await self._files.run(of.user, self._with, of, manifest_of)

    async def extent(self, of: Place, path: str) -> Extent:
        """Add up the files at a path below a run or a home."""
        return await self._files.run(of.user, self._with, of, file_copy.extent_of, path)

    async def keep(
        self,
        of: Place,
        path: str,
        to: StoredPlace,
        *,
        most: int,
        epoch: int,
        check_cancelled: Callable[[], None],
    ) -> tuple[Extent, ModelFormat]:
        """Copy the files at a path, and tell what they are."""

        def keep() -> Extent:
            with (
                self._fence.acting(epoch),
                self.directories.using(to, write=True) as target,
                self.directories.using(of) as source,
            ):
                return file_copy.copy(source, path, target, most, check_cancelled)

        extent = await asyncio.get_running_loop().run_in_executor(self._copier, keep)
        return extent, await self._looks.recognise(to.user, lambda: self.directories.using(to))

    async def models(self, of: JobRun) -> Sequence[tuple[str, ModelFormat]]:
        """Look for models among a run's files, in a separate process.

        Raises `Refused` where that takes too much.
        """
        try:
            # as what writes: it takes long, and would keep files that are to be moved from ever being left alone
            return await self._looks.models_in(of.user, lambda: self.directories.using(of, write=True))
        except OSError:
            return ()

    async def fetch(
        self, source: OpenSource, to: StoredPlace, owner: int | None, *, epoch: int, steps: FetchSteps
    ) -> Extent:
        """Copy a source, in a separate process."""

        def fetch() -> Extent:
            roots = self.directories.roots
            with self._fence.acting(epoch), roots.using(to.tenant, write=True) as root:
                return starter.fetch(root, source, to, owner, steps)

        return await asyncio.get_running_loop().run_in_executor(self._fetcher, fetch)

    async def place(self, of: StoredPlace, owner: int | None, *, epoch: int) -> None:
        """Make the directory of something that is stored."""

        def make() -> None:
            roots = self.directories.roots
            with self._fence.acting(epoch), roots.using(of.tenant, write=True) as root:
                ensure_stored(root, *self.directories.below(of), owner)

        await self._files.run(of.user, make)

    async def evict(self, of: StoredPlace, owner: int | None, *, epoch: int) -> None:
        """Remove what was fetched of a source."""

        def remove() -> None:
            roots = self.directories.roots
            with self._fence.acting(epoch), roots.using(of.tenant, write=True) as root:
                starter.evict(root, of, owner)

        await asyncio.get_running_loop().run_in_executor(self._eraser, remove)

    async def address(self, source: OpenSource, ask: SourceAsk) -> str:
        """Return the address of one request to a source."""
        return await self._files.run(source.bucket, starter.address, source, ask)

    async def erase_stored(self, of: StoredPlace, epoch: int, check_cancelled: Callable[[], None]) -> None:
        """Remove the files of something that is stored."""

        def remove() -> None:
            with self._fence.acting(epoch), self.directories.using(of, write=True):
                turn = turn_of(MOST_REMOVED, check_cancelled)
                for path in self.directories.all_of(of):
                    remove_directory(path, turn)

        await asyncio.get_running_loop().run_in_executor(self._eraser, remove)

    async def spaces(self) -> Mapping[str, Space]:
        """Return the file systems of jobs and of homes, which may be one."""
        return await asyncio.get_running_loop().run_in_executor(self._meter, self._spaces)

    async def sizes(self, wait_s: Mapping[Place, float], *, hurry: bool) -> Sizes:
        """Measure those of these places whose time has come."""
        work = partial(self._sizes, wait_s, hurry=hurry)
        return await asyncio.get_running_loop().run_in_executor(self._meter, work)

    def devices(self) -> set[int]:
        """Return the numbers of the file systems; blocks."""
        found = set()
        for path in (self.directories.jobs, self.directories.homes):
            try:
                found.add(os.stat(path).st_dev)  # noqa: PTH116
            except OSError:
                continue
        return found

    def _with(
        self,
        of: Place | StoredPlace,
        work: Callable[Concatenate[Path, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Work on the directory of a place while that stays where it is."""
        with self.directories.using(of) as path:
            return work(path, *args, **kwargs)

    def _spaces(self) -> dict[str, Space]:
        here = {"jobs": self.directories.jobs, "homes": self.directories.homes}
        return {name: space for name, path in here.items() if (space := space_of(path)) is not None}

    def _sizes(self, wait_s: Mapping[Place, float], *, hurry: bool) -> Sizes:
        asked = {place: partial(measure, self.directories.at(place)) for place in wait_s}
        done = dict(self._turns.measure_due(asked, wait_s.__getitem__, hurry=hurry))
        return Sizes(done, {place: turn.so_far for place, turn in self._turns.of.items()})

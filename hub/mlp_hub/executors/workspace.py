"""The workspace's interface: files of users and of jobs, where ranks see them.

It is the second half of an executor, which alone knows where these files are: on this machine's disk, or on a volume that
the service may not even have. Nobody else has a path to them; they are named by user and by run. Nothing here waits on the
event loop.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from mlp_hub.domain.jobs.points import SpooledPoint
from mlp_hub.domain.stored.model import ModelFormat
from mlp_hub.executors.places import Home, JobRun, Place, StoredPlace
from mlp_hub.executors.tenant_files import TenantFiles
from mlp_hub.safe_path import PathKind
from mlp_language.message import Message

__all__ = ["Home", "JobRun", "Place", "StoredPlace", "Workspace"]  # places are known from here too
WORKSPACE = "/workspace"
"""Where ranks see their job's directory, whatever the executor."""
MODEL = "/model"
"""Where a replica of an app sees the files of its model."""
CODE = f"{WORKSPACE}/code/main.py"
"""Where they see the text of a job's program, which is written for each attempt."""
FETCHES = 6
"""Tuning: sources that are copied at a time: more at once, for the disk and the network that jobs use as well."""
LOOK_EVERY_S = 1.0
"""Tuning: seconds between two times that sizes, and what processes write, are asked for: sooner with less, cheaper with more."""


@dataclass(frozen=True, slots=True)
class OpenSource:
    """Objects of a bucket to copy, with the credentials; `allowed`: endpoints at private addresses.

    `wanted`: the paths below it that must be here, in addition to existing ones. `""` is all, and an
    empty value only checks that it can be read. Without `wanted` all objects are copied, and files that
    are gone there are removed here.
    """

    bucket: str
    prefix: str
    endpoint: str = ""
    region: str = ""
    key_id: str = field(default="", repr=False)
    key: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    allowed: tuple[str, ...] = ()
    wanted: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class SourceAsk:
    """One request to a source: for the object at a key, or for a page of the list of keys that begin with it."""

    key: str
    listed: bool = False
    flat: bool = True
    after: str = ""
    limit: int = 1000


class Unfinished(Exception):  # noqa: N818 - what became of it
    """Partial progress: the turn of others has come; a repeated call continues."""


SpoolLot = list[tuple[str, list[SpooledPoint]]]
"""Points of reporting processes, as many as are stored in one transaction."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Extent of a file, or of a directory with all below: its files and their bytes."""

    files: int
    size: int


@dataclass(frozen=True, slots=True)
class Contents:
    """Contents of a dataset: its number of files, their bytes, those with a checksum, and the total digest."""

    files: int
    size: int
    checked: int
    digest: str


@dataclass(frozen=True, slots=True)
class FoundEntry:
    """Script or directory in the home that a user named: its path below the home, and its kind.

    The kind is `UNKNOWN` where it cannot be looked at. `unfit` is the reason why an existing file
    cannot be a program, and the remedy. `alike` is the path of an existing file where this one is
    missing, if it differs only in case or form of Unicode.
    """

    path: str
    kind: PathKind
    unfit: Message | None = None
    alike: str = ""


@dataclass(frozen=True, slots=True)
class SpoolBatch:
    """Part of a spool that was read at a time.

    The last one has two reports: `cut_at`, the number of bytes read, if the spool has more than is read;
    and in `lost`, by source, the number of points that could not be written, None if not even that number could.
    """

    lot: SpoolLot
    cut_at: int | None = None
    lost: Mapping[str, int | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Space:
    """A file system: its size, and what of it is free for everybody. `files` are the inodes, 0 where it has no limit of them."""

    total: int
    free: int
    files: int = 0
    files_free: int = 0


@dataclass(frozen=True, slots=True)
class Size:
    """Size of a directory on disk, in bytes. `unseen`: why there is more below than can be looked at; mostly None.

    `small` is the number of names that count more than they take, as those of empty files.
    """

    used: int
    unseen: Message | None = None
    small: int = 0


@dataclass(frozen=True, slots=True)
class Sizes:
    """Results of one look: the complete measurements, and the least sizes of those in progress."""

    done: Mapping[Place, Size]
    so_far: Mapping[Place, int]


class EntryKind(StrEnum):
    """Kind of an entry in a directory; links are shown and never followed."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    OTHER = "other"  # a device, a pipe, a socket, or what has no name that is text


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """Entry of a directory: its name, size in bytes and when it was written, in seconds since the epoch."""

    name: str
    kind: EntryKind
    size: int
    modified: float


@dataclass(frozen=True, slots=True)
class DirectoryPage:
    """Some entries of a directory by name, and whether there are more after the `last` one that was looked at."""

    entries: Sequence[DirectoryEntry]
    more: bool
    last: str | None = None


class OpenFile(Protocol):
    """A file that is open to be read: how it was when it was opened. `tag` is another one once it was written to."""

    size: int
    modified: float
    tag: str

    async def read(self, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset` on; fewer if the file has no more by now."""
        ...

    def close(self) -> None:
        """Close it; again does nothing."""
        ...


class FetchSteps(Protocol):
    """Callbacks while a source is copied, from any thread."""

    def admit(self, size: int) -> None:
        """Record that `size` bytes will come. Raises `Refused` without room for them."""
        ...

    def report_progress(self, percent: int) -> None:
        """Record the progress of the copy."""
        ...

    def check_cancelled(self) -> None:
        """Raise if the copy must not continue."""
        ...


class Workspace(Protocol):
    """Files of users and jobs; a missing or unreadable file is not an error."""

    measures: bool  # whether sizes can be asked for here

    @property
    def tenants(self) -> TenantFiles | None:
        """Trees of tenants' files; None if all tenants share one tree and cannot leave it."""
        ...

    async def find_entry(self, user: str, entry: str) -> FoundEntry:
        """Look for a user's script, or directory, by its path below the home or as their programs see it."""
        ...

    async def newest_checkpoint(self, of: JobRun) -> float | None:
        """Return when the newest file among the run's checkpoints was written, in seconds since the epoch."""
        ...

    def spooled(
        self, of: JobRun, after: Callable[[], Awaitable[Mapping[str, int]]]
    ) -> AsyncIterator[SpoolBatch]:
        """Yield the points that the run's processes spooled, above the number of each in `after`, asked only if there are any.

        That acknowledges all up to these numbers: they are stored, and need not be kept.
        """
        ...

    async def files(self, of: Place | StoredPlace, path: str, after: str, limit: int) -> DirectoryPage:
        """List a directory of a run, a home or a stored item, by its path below; entries after the name `after`.

        Refuses other entries, and links.
        """
        ...

    async def open_file(self, of: Place | StoredPlace, path: str, head: int = 0) -> OpenFile:
        """Open a plain file of a run, a home or something stored, by its path below. Refuses all but plain files, and links on the way.

        A file of at most `head` bytes is read at the same time, and not again for `read` from its beginning.
        """
        ...

    async def erase(self, of: Place, epoch: int, check_cancelled: Callable[[], None]) -> None:
        """Remove a run's directory with its log, or a home; it may take long. Raises `Superseded`, as all acts of an executor.

        `check_cancelled` is called on the way, from any thread, and may raise to leave the rest where it is.
        """
        ...

    async def disk_size(self, of: Place) -> int:
        """Measure what a run's directory or a home takes on the disk, however long that takes; 0 where there is none."""
        ...

    async def stored_size(self, of: StoredPlace) -> int:
        """Return what the files of something that is stored count: their lengths, and beyond some their number; 0 where there are none."""
        ...

    async def manifest(self, of: StoredPlace) -> Contents | None:
        """Return the contents of a stored item without reading its files; None if that would take more than a moment."""
        ...

    async def extent(self, of: Place, path: str) -> Extent:
        """Add up the files at a path below a run or a home. Refuses what is not there, and what could not be kept."""
        ...

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
        """Copy the files at a path, replace existing ones, and sync them; return their extent and format.

        Refuses files that change meanwhile, and more than `most` bytes. `check_cancelled` is as in `erase`.
        """
        ...

    async def models(self, of: JobRun) -> Sequence[tuple[str, ModelFormat]]:
        """Return the models among a run's files, each by its path below, as names and headers tell them: a directory, or a file at the top."""
        ...

    async def fetch(
        self, source: OpenSource, to: StoredPlace, owner: int | None, *, epoch: int, steps: FetchSteps
    ) -> Extent:
        """Make the files equal to those of a source; existing files that did not change are not fetched again.

        Refuses with the reason. Raises `OSError` where a repeated call can succeed; it continues from
        there.
        """
        ...

    async def place(self, of: StoredPlace, owner: int | None, *, epoch: int) -> None:
        """Make the directory of something that is stored where it is missing: its owner's, a system uid; None: the platform's own."""
        ...

    async def evict(self, of: StoredPlace, owner: int | None, *, epoch: int) -> None:
        """Remove what was fetched of a source, as it came; files that were changed or put beside it stay."""
        ...

    async def address(self, source: OpenSource, ask: SourceAsk) -> str:
        """Return the address of one request to a source: it holds for a few minutes, and has no credential in it."""
        ...

    async def erase_stored(self, of: StoredPlace, epoch: int, check_cancelled: Callable[[], None]) -> None:
        """Remove the files of something that is stored, as `erase` does; raise `Unfinished` where it takes more than a turn."""
        ...

    async def spaces(self) -> Mapping[str, Space]:
        """Return the file systems by their purpose; empty where they cannot be asked."""
        ...

    async def sizes(self, wait_s: Mapping[Place, float], *, hurry: bool) -> Sizes:
        """Measure those of these places whose `wait_s` seconds have passed, and forget all others.

        It takes a moment only: a long measurement continues at the next look. In a `hurry` more time goes
        into each.
        """
        ...

"""Directories of users and of runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs import names
from mlp_hub.domain.stored.storage import ARRIVING
from mlp_hub.executors.workspace import Home, JobRun, Place, StoredPlace
from mlp_hub.isolation import TenantRoots
from mlp_language.message import msg


@dataclass(frozen=True, slots=True)
class Directories:
    """Directories where the service sees them: homes, which are all in one tree, and what is in the tree of each object's tenant."""

    homes: Path  # {user}/ is the user's home
    jobs: Path  # {user}/{job}/ is the directory of a job's first run, {user}/{job}@{run}/ of a later one; in the tree of all
    own_roots: TenantRoots | None = None  # None: all are in the tree of all

    @property
    def roots(self) -> TenantRoots:
        """The roots of tenants' trees."""
        return self.own_roots or TenantRoots(self.jobs.parent)

    def home(self, user: str) -> str:
        """Return the user's home directory; as text, since making a path costs much where every job comes by."""
        return f"{self.homes}/{component(user)}"

    def workspace(self, of: JobRun) -> str:
        """Return the directory of a run, which its ranks see as /workspace."""
        root = self.roots.path(of.tenant)
        jobs = self.jobs if root == self.root else f"{root}/{self.jobs.name}"
        return f"{jobs}/{component(of.user)}/{component(names.directory_name(of.job, of.run))}"

    def stored(self, of: StoredPlace) -> Path:
        """Return the directory of something that is stored, beside those of jobs: `datasets/{user}/{dataset}`."""
        return self.roots.path(of.tenant).joinpath(*self.below(of))

    @property
    def root(self) -> Path:
        """Directory of the common tree of storage, for tenants without a separate root."""
        return self.jobs.parent

    def below(self, of: StoredPlace | JobRun) -> tuple[str, str, str]:
        """Return the names by which something lies in the tree of its tenant, whichever that is."""
        if isinstance(of, StoredPlace):
            return f"{of.kind}s", component(of.user), component(of.name)
        return self.jobs.name, component(of.user), component(names.directory_name(of.job, of.run))

    def all_below(self, of: StoredPlace | JobRun) -> list[tuple[str, ...]]:
        """Return the names by which all that belongs to something lies there: itself, and what is on its way into what is stored."""
        kind, user, name = self.below(of)
        found: list[tuple[str, ...]] = [(kind, user, name)]
        if isinstance(of, StoredPlace):
            found.append((kind, user, ARRIVING, name))
        return found

    def all_of(self, of: StoredPlace) -> list[Path]:
        """Return the directory of a stored item, and that of its files that are still arriving."""
        root = self.roots.path(of.tenant)
        return [root.joinpath(*names) for names in self.all_below(of)]

    @contextlib.contextmanager
    def using(self, of: Place | StoredPlace, *, write: bool = False) -> Iterator[Path]:
        """Yield the directory of any of them, which stays where it is until the end; see `TenantRoots.using`."""
        if isinstance(of, Home):
            yield Path(self.home(of.user))
            return
        with self.roots.using(of.tenant, write=write):
            yield self.at(of)

    def at(self, place: Place | StoredPlace) -> Path:
        """Return any of them."""
        if isinstance(place, StoredPlace):
            return self.stored(place)
        return Path(self.home(place.user) if isinstance(place, Home) else self.workspace(place))


def component(name: str) -> str:
    """Return a name that is safe as one part of a path; refuse all others."""
    if not name or name in {".", ".."} or "/" in name or "\0" in name or len(name.encode()) > 255:
        raise Refused(Reason.INVALID, msg("{name} cannot be used as a directory name", name=repr(name)))
    return name

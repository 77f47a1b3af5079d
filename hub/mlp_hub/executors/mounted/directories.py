"""Directories of users and of runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mlp_hub.domain import names
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.executors.workspace import Home, JobRun, Place, StoredPlace
from mlp_language.message import msg


@dataclass(frozen=True, slots=True)
class Directories:
    """Directories where the service sees them."""

    homes: Path  # {user}/ is the user's home
    jobs: Path  # {user}/{job}/ is the directory of a job's first run, {user}/{job}@{run}/ of a later one

    def home(self, user: str) -> str:
        """Return the user's home directory; as text, since making a path costs much where every job comes by."""
        return f"{self.homes}/{component(user)}"

    def workspace(self, of: JobRun) -> str:
        """Return the directory of a run, which its ranks see as /workspace."""
        return f"{self.jobs}/{component(of.user)}/{component(names.directory_name(of.job, of.run))}"

    def stored(self, of: StoredPlace) -> Path:
        """Return the directory of something that is stored, beside those of jobs: `datasets/{user}/{dataset}`."""
        return self.shelf(of.kind, of.user) / component(of.name)

    @property
    def root(self) -> Path:
        """The directory of the whole tree of storage."""
        return self.jobs.parent

    def shelf(self, kind: str, user: str) -> Path:
        """Return the directory of all of a kind (`dataset`, `model`) that is stored for a user."""
        return self.root / f"{kind}s" / component(user)

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

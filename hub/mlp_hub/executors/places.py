"""Places of files: named by user, by job and run, and by the tenant in whose tree they are; nobody but the workspace has paths."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class JobRun:
    """A run of a job, whose attempts share one directory and one log. Its `tenant` says in whose tree that is; empty: that of all."""

    user: str
    job: str
    run: int
    tenant: str = field(default="", compare=False)  # the others name it already


@dataclass(frozen=True, slots=True)
class Home:
    """The home directory of a user; of processes, the user's notebook servers."""

    user: str


@dataclass(frozen=True, slots=True)
class StoredPlace:
    """Something that is stored for a user, of a kind (`dataset`, `model`), in the tree of a tenant."""

    kind: str
    user: str
    name: str
    tenant: str = field(default="", compare=False)


Belonging = StoredPlace | JobRun
"""Items that belong to a tenant, and are in its tree."""
Place = JobRun | Home
"""A directory whose size can be asked for."""


def home_mount(user: str) -> str:
    """Return where a user's home is seen inside."""
    return "/home/" + (re.sub(r"[^A-Za-z0-9._@+-]", "_", user).lstrip(".") or "user")

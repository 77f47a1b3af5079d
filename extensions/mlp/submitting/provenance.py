"""Where a run is submitted from: the environment's packages, and the git commit of the directory. Quick, or left out."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

LONGEST = 262_144
"""Characters of an environment that the service takes."""
GIT_S = 2.0
"""Seconds that git may take; a directory on a slow disk holds no submit up."""
_NOTHING_ELSE = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}
"""Variables by which git only looks: it writes no index, asks nobody, and fetches nothing that a repository lacks."""
_INFO = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._]*)-(?P<version>[^-]+)\.(?:dist|egg)-info")


def told(directory: str | os.PathLike[str] = ".") -> dict[str, Any]:
    """Return what is known, as a submit carries it."""
    return {"environment": environment(), **commit(Path(directory))}


def environment() -> str:
    """Return Python and all packages that this interpreter finds, a line NAME==VERSION each."""
    places = []
    for place in sys.path:
        try:
            places.append((place, Path(place or ".").stat().st_mtime_ns))
        except OSError:
            continue
    return _environment(tuple(places))


@lru_cache(maxsize=4)
def _environment(places: Sequence[tuple[str, int]]) -> str:
    """Return the names of installed packages, which are enough; a later install changes a directory's time."""
    found: dict[str, str] = {}
    for place, _ in places:
        try:
            names = [one.name for one in Path(place or ".").iterdir()]
        except OSError:
            continue
        for name in names:
            if match := _INFO.fullmatch(name):
                found.setdefault(match["name"].replace("_", "-").lower(), match["version"])
    lines = [f"python=={platform.python_version()}", *(f"{n}=={v}" for n, v in sorted(found.items()))]
    return "\n".join(lines)[:LONGEST] + "\n"


def commit(directory: Path) -> dict[str, Any]:
    """Return the commit of the directory, and whether files that git knows were changed since; nothing outside of a repository."""
    try:
        here = directory.resolve()
        if not any((top / ".git").exists() for top in (here, *here.parents)):
            return {}
        head = _git(here, "rev-parse", "--verify", "HEAD")
        if not re.fullmatch(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", head):
            return {}
        if _runs_programs(here):
            return {"commit": head}
        changed = _git(here, "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all")
    except (OSError, subprocess.SubprocessError):
        return {}
    return {"commit": head, "dirty": bool(changed)}


def _runs_programs(directory: Path) -> bool:
    """Whether the repository itself names programs that git would run to see what has changed: it may be anybody's, unpacked here.

    Those of the user's own configuration, as of Git LFS, are the user's to name.
    """
    try:
        named = _git(directory, "config", "--show-scope", "--get-regexp", r"^filter\..*\.(clean|process)$")
    except subprocess.CalledProcessError as error:
        return error.returncode != 1  # none is named; else it cannot be told
    return any(line.startswith(("local\t", "worktree\t")) for line in named.splitlines())


def _git(directory: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "core.fsmonitor=false", "-C", str(directory), *words],
        capture_output=True,
        timeout=GIT_S,
        check=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **_NOTHING_ELSE},
    )
    return done.stdout.decode("utf-8", "replace").strip()

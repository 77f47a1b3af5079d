"""Which system uids a hub that is root gives its users: a range of its own on this machine, kept for ever.

The state directory remembers its range. A file of the machine lists all, so that another hub takes another one: what
the kernel keeps by uid (keys, numbers of processes) is then no two hubs' at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path

from mlp_hub.helpers import UIDS as RANGE
from mlp_hub.settings import FIRST_UID, Settings
from mlp_language.render import say

REGISTRY = Path("/var/lib/mlp-hub/uids.json")
SUBUIDS = Path("/etc/subuid")
_UID_MAX = 2**32 - 2


def claim(settings: Settings) -> list[str]:
    """Settle this hub's range, at the first time and for all; return what the operator should know of it."""
    if os.getuid() != 0:
        return []
    try:
        with _registry() as taken:
            return _settle(settings, taken)
    except OSError as error:
        _remember(settings, settings.uid_base)
        return [f"{REGISTRY} cannot be written ({error.strerror}): another hub may give the same system uids"]


def shared_with(settings: Settings) -> list[str]:
    """Return the state directories of other hubs of this machine whose users may have the same uids as this one's."""
    try:
        with _registry(write=False) as taken:
            return _others(settings, taken, settings.uid_base)
    except OSError:
        return []


def span(first: int) -> str:
    """Say the range in words."""
    return say("{first} to {last}", first=first, last=first + RANGE - 1)


def _settle(settings: Settings, taken: dict[str, int]) -> list[str]:
    before = settings.recorded_uid
    if settings.first_uid is not None:
        first = settings.first_uid
    elif before is not None:
        first = before
    elif any(settings.homes_dir.iterdir()):
        first = FIRST_UID  # made before ranges were: what is there belongs to these
    else:
        first = _free(taken)
    _remember(settings, first)
    taken[str(settings.home.resolve())] = first
    said = []
    if before not in (None, first):
        said.append(
            f"MLP_FIRST_UID moves users from system uids {before} on to {first} on: files that are there keep their owners "
            "until you give them to the new ones (chown)"
        )
    if others := _others(settings, taken, first):
        said.append(shared_words(first, others))
    return said


def shared_words(first: int, others: list[str]) -> str:
    """Say that other hubs have the same range, and what to do."""
    return (
        f"users have the same system uids ({span(first)}) as those of the hub in {', '.join(others)}, as a copy of a state "
        "directory has: remove one of the two, or set MLP_FIRST_UID here before anybody uses it"
    )


def _others(settings: Settings, taken: dict[str, int], first: int) -> list[str]:
    mine = str(settings.home.resolve())
    return sorted(home for home, theirs in taken.items() if home != mine and abs(theirs - first) < RANGE)


def _free(taken: dict[str, int]) -> int:
    """Return the first range that no hub has, nor any person's containers (/etc/subuid)."""
    used = [(first, RANGE) for first in taken.values()]
    with contextlib.suppress(OSError):
        for line in SUBUIDS.read_text().splitlines():
            _, _, numbers = line.partition(":")
            start, _, count = numbers.partition(":")
            if start.isdigit() and count.isdigit():
                used.append((int(start), int(count)))
    for first in range(FIRST_UID, _UID_MAX - RANGE, RANGE):
        if all(first + RANGE <= theirs or theirs + many <= first for theirs, many in used):
            return first
    return FIRST_UID


def _remember(settings: Settings, first: int) -> None:
    if settings.recorded_uid != first:
        new = settings.uid_file.with_suffix(".new")
        new.write_text(f"{first}\n")
        new.replace(settings.uid_file)


@contextlib.contextmanager
def _registry(*, write: bool = True) -> Iterator[dict[str, int]]:
    """Lock the machine's list and give it, state directory: first uid; what is changed is written.

    State directories that are no longer there, or have another range by now, are left out.
    """
    if write:
        REGISTRY.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    fd = os.open(REGISTRY, (os.O_RDWR | os.O_CREAT if write else os.O_RDONLY) | os.O_CLOEXEC, 0o644)
    with os.fdopen(fd, "r+" if write else "r") as file:
        fcntl.flock(file, fcntl.LOCK_EX if write else fcntl.LOCK_SH)
        taken = {home: first for home, first in _read(file.read()).items() if _is_there(home, first)}
        yield taken
        if write:
            text = json.dumps(taken, indent=1, sort_keys=True) + "\n"
            file.seek(0)
            file.write(text)
            file.truncate()


def _read(text: str) -> dict[str, int]:
    try:
        found = json.loads(text)
    except ValueError:  # new, or torn when the machine went down: each hub that comes up enters itself again
        return {}
    if not isinstance(found, dict):
        return {}
    return {home: first for home, first in found.items() if isinstance(first, int)}


def _is_there(home: str, first: int) -> bool:
    try:
        return int(Path(home, "first-uid").read_text()) == first
    except (OSError, ValueError):
        return False

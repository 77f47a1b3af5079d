"""System uids of the users of a hub that is root: a separate range on this machine, kept for ever.

The state directory remembers its range. A file of the machine lists all ranges, so that another hub
takes another one. Objects that the kernel keeps by uid (keys, numbers of processes) then never
belong to two hubs at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path

from mlp_hub import bindings, durable
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
    elif settings.uid_file.exists():
        first = _recovered(settings, taken.get(str(settings.home.resolve())))
    elif any(settings.homes_dir.iterdir()):
        first = FIRST_UID  # made before ranges were: what is there belongs to these
    else:
        first = _free(taken)
    taken[str(settings.home.resolve())] = first
    said = []
    if before is None and settings.first_uid is None and settings.uid_file.exists():
        durable.set_aside(settings.home, str(settings.uid_file))
        said.append(
            say(
                "{path} could not be read, and was written again: users have system uids {span}",
                path=str(settings.uid_file),
                span=span(first),
            )
        )
    _remember(settings, first)
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


def _recovered(settings: Settings, noted: int | None) -> int:
    """Return the first uid of a hub whose note of it cannot be read.

    It is read from other records, or else derived from the owners of the homes.
    """
    if first := bindings.read(settings).first_uid or noted:
        return first
    owners = [uid for uid in map(_owner, settings.homes_dir.iterdir()) if uid >= FIRST_UID]
    return FIRST_UID + (min(owners) - FIRST_UID) // RANGE * RANGE if owners else FIRST_UID


def _owner(path: Path) -> int:
    return path.lstat().st_uid


def highest_number(settings: Settings) -> int:
    """Return the highest number of a user with files here, by owners of homes and job directories; or 0."""
    found = 0
    # a job's directory belongs to its user, what holds those may be the hub's
    for pattern, place in (("*", settings.homes_dir), ("*/*", settings.jobs_dir)):
        for path in place.glob(pattern):
            with contextlib.suppress(OSError):
                number = _owner(path) - settings.uid_base
                found = max(found, number if number < RANGE else 0)
    return found


def _remember(settings: Settings, first: int) -> None:
    if settings.recorded_uid != first:
        durable.write(settings.uid_file, f"{first}\n", 0o644)


@contextlib.contextmanager
def _registry(*, write: bool = True) -> Iterator[dict[str, int]]:
    """Lock the machine's list and yield it as state directory: first uid; changes are written.

    State directories that no longer exist, or that have another range by now, are left out.
    """
    if write:
        REGISTRY.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    fd = os.open(REGISTRY, (os.O_RDWR | os.O_CREAT if write else os.O_RDONLY) | os.O_CLOEXEC, 0o644)
    with os.fdopen(fd, "r+" if write else "r", errors="replace") as file:
        fcntl.flock(file, fcntl.LOCK_EX if write else fcntl.LOCK_SH)
        before = file.read()
        taken = {home: first for home, first in _read(before).items() if _is_there(home, first)}
        yield taken
        text = json.dumps(taken, indent=1, sort_keys=True) + "\n"
        if write and text != before:
            file.seek(0)
            file.write(text)
            file.truncate()
            file.flush()
            os.fsync(file.fileno())


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
        text = Path(home, "first-uid").read_text()
        # where it is torn, this list is what it is written anew from
        return not text.endswith("\n") or int(text) == first
    except OSError:
        return False
    except ValueError:
        return True

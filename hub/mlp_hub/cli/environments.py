"""Environments of packages side by side, so that running programs keep theirs while a new one is made.

`.venv` is then a link to `.venv-<8 digits of hex>`. Programs are named by the link, so that noted
paths remain right. A program that has to keep the files that it began with, such as the watcher of
a job, is named by the environment itself. A sandbox keeps the directory that it mounted. An
environment is removed when nothing names it any more. Only the standard library is imported.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import time
from pathlib import Path

_NAME = re.compile(r"-[0-9a-f]{8}$")
_TICKS = os.sysconf("SC_CLK_TCK")
_FIRST = "-00000000"  # of one that had the link's place itself: who runs from it names it by the link
_MOVED = ".mlp-moved"  # says when it lost that place
_SCRIPT_BYTES = 1 << 20  # a larger file below bin/ is no script that names its interpreter


def runs(link: Path) -> bool:
    """Whether a process runs from the environment that the link leads to, as far as command lines tell."""
    return bool(_used([link, link.resolve()]))


def beside(link: Path, number: str) -> Path:
    """Return an empty place for another environment; the remains of a failed try there are removed."""
    place = link.parent / f"{link.name}-{number}"
    while place.exists() and _used(
        [place]
    ):  # the same sources once more, as after a change that was taken back
        number = f"{(int(number, 16) + 1) % 16**8:08x}"
        place = link.parent / f"{link.name}-{number}"
    shutil.rmtree(place, ignore_errors=True)
    return place


def copy(old: Path, new: Path) -> str:
    """Copy an environment with all that was installed into it by hand; the files are shared until one is replaced."""
    shutil.copytree(old, new, symlinks=True, copy_function=os.link)
    return f"{new.name}; the hub runs from {old.name}, which stays as it is"


def name_by_link(link: Path, venv: Path) -> None:
    """Let the programs that were installed into an environment name it by the link."""
    if not link.is_symlink() and link == venv:
        return
    real = re.compile(re.escape(os.fsencode(venv)) + rb"(?![\w-])")
    for path in (venv / "pyvenv.cfg", *(venv / "bin").iterdir()):
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _SCRIPT_BYTES:
            continue
        content = path.read_bytes()
        named = real.sub(os.fsencode(link), content)
        if named != content:
            mode = path.stat().st_mode
            path.unlink()  # not written over: another environment may have the same file
            path.write_bytes(named)
            path.chmod(mode)


def swap(link: Path, new: Path) -> None:
    """Let the link lead to another environment, at once; one that lay in its place itself is kept beside it."""
    made = link.with_name(f"{link.name}.next")
    made.unlink(missing_ok=True)
    made.symlink_to(new.name)
    if link.exists() and not link.is_symlink():
        kept = link.with_name(f"{link.name}{_FIRST}")
        shutil.rmtree(kept, ignore_errors=True)
        link.rename(kept)
        ticks = int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS)  # as of processes
        (kept / _MOVED).write_text(f"{_boot()} {ticks / _TICKS}")
    made.replace(link)


def prune(link: Path) -> None:
    """Remove environments that the link does not lead to and nothing runs from any more."""
    others = [
        path
        for path in link.parent.glob(f"{link.name}-*")
        if _NAME.fullmatch(path.name.removeprefix(link.name))
        and not path.is_symlink()
        and path != link.resolve()
    ]
    used = _used(others) if others else set()
    for path in others:
        if path not in used and link.is_symlink():
            shutil.rmtree(path, ignore_errors=True)


def _used(environments: list[Path]) -> set[Path]:
    """Return the environments that a process names as its program, or as that of its interpreter.

    One that names the link runs from where that led when it began: the libraries that it has mapped tell.
    """
    wanted: dict[Path, tuple[bytes, float | None]] = {
        path: (os.fsencode(path) + b"/", None) for path in environments
    }
    wanted |= {path: _first(path) for path in environments if path.name.endswith(_FIRST)}
    links = tuple({os.fsencode(path.with_name(_NAME.sub("", path.name))) + b"/" for path in environments})
    found: set[Path] = set()
    for process in Path("/proc").glob("[1-9]*"):
        if int(process.name) == os.getpid():
            continue
        try:
            line = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it has ended
            continue
        found |= {
            path
            for path, (name, before) in wanted.items()
            if any(part.startswith(name) for part in line[:3])
            and (before is None or _began(process) < before)
        }
        if any(part.startswith(links) for part in line[:3]):
            mapped = _mapped(process)
            found |= {path for path in environments if os.fsencode(path) + b"/" in mapped}
    return found


def _mapped(process: Path) -> bytes:
    """Return what a process has mapped, each file by the path that it has now."""
    try:
        return (process / "maps").read_bytes()
    except OSError:  # it has ended, or is somebody else's
        return b""


def _first(path: Path) -> tuple[bytes, float | None]:
    """Return the path that its programs know it by, and the time before which such programs started.

    The time is in seconds since the boot.
    """
    link = path.with_name(path.name.removesuffix(_FIRST))
    try:
        boot, moved = (path / _MOVED).read_text().split()
    except (OSError, ValueError):
        return os.fsencode(link) + b"/", None
    return os.fsencode(link) + b"/", float(moved) if boot == _boot() else 0.0


def _began(process: Path) -> float:
    """Return when a process began, in seconds since the boot."""
    try:
        after_name = (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return math.inf
    return int(after_name[19]) / _TICKS


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()

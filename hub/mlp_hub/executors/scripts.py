"""Scripts as people have them: the interpreter of one, and the reason why one cannot be run.

Both come from its name and its first bytes.
"""

from __future__ import annotations

import os
import re
import shlex
import unicodedata
from collections.abc import Iterable
from itertools import islice
from pathlib import PurePosixPath

from mlp_hub.domain.runtime.runtime import NOTEBOOK
from mlp_hub.executors.workspace import FoundEntry
from mlp_hub.safe_path import DirHandle, PathKind, Peek, peek
from mlp_language.message import Message, msg

PYTHON, SHELL = ".py", ".sh"
HEAD = 256
"""Given: bytes of a first line, as the kernel takes it."""
MOST_SCRIPT = 65_536
"""Safety: bytes of a script of a shell whose end is looked at; a longer one is taken as it is."""
MOST_NAMES = 10_000
"""Safety: names of a directory that are looked through for one that is alike: bounds what a missing path costs."""
_MARK = b"\xef\xbb\xbf"
_WIDE = (b"\xff\xfe", b"\xfe\xff")
_SHELL = re.compile(r"\b(?:ba|da|z|k)?sh\b")
_WAITS = re.compile(rb"\b(?:wait|fg)\b")


def find(home: str | os.PathLike[str], path: str, seen_at: str) -> FoundEntry:
    """Look for a script by its path below a home."""
    found = peek(home, path, seen_at, HEAD)
    if found.kind is PathKind.MISSING:
        return FoundEntry(path, found.kind, alike=_alike(home, path))
    wrong = unfit(path, found)
    if wrong is None and found.kind is PathKind.FILE and _is_of_a_shell(path, found.head):
        wrong = _ends_at_once(path, peek(home, path, seen_at, MOST_SCRIPT).head)
    return FoundEntry(path, found.kind, wrong)


def interpreter(head: bytes) -> tuple[str, ...]:
    """Return the interpreter of a shell script from its first line, as the kernel reads it, else `/bin/sh`."""
    line = head.split(b"\n", 1)[0].split(b"\0", 1)[0]
    words = line[2:].strip(b" \t").split(maxsplit=1) if line.startswith(b"#!") else []
    program, *options = words or [b""]
    if not program.startswith(b"/"):
        return ("/bin/sh",)
    return tuple(word.decode(errors="replace") for word in (program, *options))


def unfit(path: str, found: Peek) -> Message | None:
    """Return why a file cannot be a program, and the remedy; None where no reason is known."""
    if found.kind is not PathKind.FILE:
        return None
    if found.head.startswith(_WIDE):
        return msg(
            "{file} is UTF-16, as Windows writes it: save it as UTF-8, or run `iconv -f UTF-16 -t UTF-8 {quoted}`",
            file=path,
            quoted=shlex.quote(path),
        )
    if path.endswith((PYTHON, NOTEBOOK)):
        return None
    marked = found.head.removeprefix(_MARK).startswith(b"#!")
    if path.endswith(SHELL) or marked:
        wrong = _from_windows(path, found.head)
        if wrong or path.endswith(SHELL):
            return wrong
    executable = bool(found.mode & 0o111)
    return None if executable and marked else _not_runnable(path, executable=executable)


def _is_of_a_shell(path: str, head: bytes) -> bool:
    marked = head.startswith(b"#!")
    return (path.endswith(SHELL) or marked) and _SHELL.search(" ".join(interpreter(head))) is not None


def _ends_at_once(path: str, text: bytes) -> Message | None:
    """Say that a script leaves its last command in the background, so that the job ends with the script and takes it along."""
    lines = [line for each in text.splitlines() if (line := each.strip()) and not line.startswith(b"#")]
    last = lines[-1] if lines else b""
    if len(text) >= MOST_SCRIPT or not last.endswith(b"&") or last.endswith(b"&&") or _WAITS.search(text):
        return None
    return msg(
        "{file} ends with a command in the background, which would end with the job at once: remove the & at its end, or add the "
        "line `wait`",
        file=path,
    )


def _from_windows(path: str, head: bytes) -> Message | None:
    """Return the part of a script's first line that no interpreter accepts, as a message."""
    file = shlex.quote(path)
    if head.startswith(_MARK):
        return msg(
            "{file} begins with a byte order mark, as Windows writes it: run `{remedy}`",
            file=path,
            remedy=rf"sed -i '1s/^\xEF\xBB\xBF//' {file}",
        )
    if head.split(b"\n", 1)[0].endswith(b"\r"):
        return msg(
            "{file} has Windows line ends in line 1: run `{remedy}`",
            file=path,
            remedy=rf"sed -i 's/\r$//' {file}",
        )
    return None


def _not_runnable(path: str, *, executable: bool) -> Message | None:
    """Return why a file whose name shows no interpreter cannot be run."""
    file = shlex.quote(path)
    stem, ending = os.path.splitext(path)  # noqa: PTH122 - text, no file
    if ending.lower() in (PYTHON, SHELL, NOTEBOOK):
        return msg(
            "{file} has its ending in capital letters: run `{remedy}`",
            file=path,
            remedy=f"mv {file} {shlex.quote(stem + ending.lower())}",
        )
    if not executable:
        return msg(
            "{file} is not executable: name it .py, .sh or .ipynb, or run `chmod +x {quoted}`",
            file=path,
            quoted=file,
        )
    return None


def _alike(home: str | os.PathLike[str], path: str) -> str:
    """Return the path of a file that differs in nothing but case or form of Unicode; empty where there is none."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts:
        return ""
    *above, name = parts
    try:
        with DirHandle.at(home) as top, top.deep_inside(above) as folder, folder.entries() as entries:
            found = _same(name, (entry.name for entry in islice(entries, MOST_NAMES)))
    except (OSError, ValueError):
        return ""
    return str(PurePosixPath(*above, found)) if found else ""


def _same(name: str, names: Iterable[str]) -> str:
    plain = _plain(name)
    return next((one for one in names if _plain(one) == plain), "")


def _plain(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())

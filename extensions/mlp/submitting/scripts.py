"""Scripts of a shell that are sent along from another machine, and files whose name was meant."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from mlp.errors import UsageError
from mlp.language import say

MOST_NAMES = 10_000
_SHELL = re.compile(r"\b(?:ba|da|z|k)?sh\b")
_WAITS = re.compile(r"\b(?:wait|fg)\b")
_RUNNER = """# {name}
import os, sys, tempfile
path = os.path.join(tempfile.mkdtemp(), {name})
with open(path, "w", encoding="utf-8") as file:
    file.write({text})
try:
    os.execvp({program}, [*{by}, path, *sys.argv[1:]])
except OSError as error:  # said as a shell says it
    print({name}, {program}, "bad interpreter", error.strerror, sep=": ", file=sys.stderr)
    sys.exit(126)
"""


def meant(path: Path) -> str:
    """Return the file that differs from this path in nothing but case or form of Unicode; empty where there is none."""
    try:
        names = [entry.name for entry, _ in zip(path.parent.iterdir(), range(MOST_NAMES), strict=False)]
    except (OSError, ValueError):
        return ""
    plain = _plain(path.name)
    return next((str(path.with_name(name)) for name in names if _plain(name) == plain), "")


def _plain(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def interpreter(name: str, text: str) -> Sequence[str]:
    """Return what runs a script of a shell, by its first line; nothing where Python does.

    Raises `UsageError` for one from Windows, and for one that ends while its last command still runs.
    """
    first, *_ = text.split("\n", 1)
    words = first[2:].strip().split(maxsplit=1) if first.startswith("#!") else []
    program, *options = words or [""]
    if not name.endswith(".sh") and (not program.startswith("/") or "python" in first):
        return ()
    if text.startswith("\ufeff"):
        raise UsageError(
            say(
                "{file} begins with a byte order mark, as Windows writes it: run `{remedy}`",
                file=name,
                remedy=rf"sed -i '1s/^\xEF\xBB\xBF//' {shlex.quote(name)}",
            )
        )
    if first.endswith("\r"):
        raise UsageError(
            say(
                "{file} has Windows line ends in line 1: run `{remedy}`",
                file=name,
                remedy=rf"sed -i 's/\r$//' {shlex.quote(name)}",
            )
        )
    by = (program, *options) if program.startswith("/") else ("/bin/sh",)
    if _SHELL.search(" ".join(by)):
        _check_end(name, text)
    return by


def _check_end(name: str, text: str) -> None:
    """Refuse a script that leaves its last command in the background: the job ends with the script and takes it along."""
    lines = [line for each in text.splitlines() if (line := each.strip()) and not line.startswith("#")]
    last = lines[-1] if lines else ""
    if last.endswith("&") and not last.endswith("&&") and not _WAITS.search(text):
        raise UsageError(
            say(
                "{file} ends with a command in the background, which would end with the job at once: remove the & at its end, or add "
                "the line `wait`",
                file=name,
            )
        )


def carried(name: str, text: str, by: Sequence[str]) -> str:
    """Return the program that runs a script which it has in it."""
    return _RUNNER.format(name=repr(name), text=repr(text), program=repr(by[0]), by=repr(list(by)))

"""Places in datasets as one writes them, and names that may be ones."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from mlp.errors import UsageError
from mlp.language import say

_NAME = re.compile(r"[a-z][a-z0-9.-]{0,49}")
PART = re.compile(r"\.mlp-[0-9a-f]{24}\.part")
"""Names of incomplete files of `pull`."""
_FIRST = re.compile(r"[:/]")


@dataclass(frozen=True, slots=True)
class DataPlace:
    """A dataset's name, and a path in it without slashes at its ends; `into`: it was written with one at its end."""

    name: str
    path: str
    into: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `NAME`, `NAME:path` or `NAME/path`. Raises `UsageError`."""
        name, *rest = _FIRST.split(text, maxsplit=1)
        if not _NAME.fullmatch(name):
            raise _no_name(text if name in {"", ".", ".."} else name)
        steps = [step for step in "".join(rest).split("/") if step]
        for step in steps:
            if not may_be_step(step):
                raise UsageError(
                    say(
                        "{path} cannot be a path in a dataset, because of {step}: a name in it is text of at most 255 bytes, without "
                        "an encoded /, and not . or ..",
                        path=text,
                        step=step,
                    )
                )
        return cls(name, "/".join(steps), text.endswith("/"))

    def __str__(self) -> str:
        return f"{self.name}:{self.path}" if self.path else self.name

    def below(self, path: str) -> str:
        """Return the path of something in here."""
        return "/".join(filter(None, (self.path, path)))


def name_for(path: str | os.PathLike[str]) -> str:
    """Return the name of a dataset for a path: its last part. Raises `UsageError` if that is not valid."""
    name = Path(path).resolve().name
    if not _NAME.fullmatch(name):
        raise _no_name(name)
    return name


def check_order(path: str | os.PathLike[str], to: str) -> None:
    """Raise `UsageError` where the dataset was named first, and the files second."""
    if not os.path.lexists(path) and os.path.lexists(to):
        raise UsageError(
            say(
                "{path} does not exist here, but {to} does: files come first, as in: mlp data push {to} {path}",
                path=os.fspath(path),
                to=to,
            )
        )


def may_be_step(name: str) -> bool:
    """Return whether a name is one step of a path, here and there: a server's name must not lead elsewhere."""
    if (
        name in {"", ".", ".."}
        or PART.fullmatch(name)
        or set(name) & {"/", "\0", os.sep, os.altsep}
        or "%2f" in name.lower()
    ):
        return False
    try:
        return len(name.encode()) <= 255
    except UnicodeEncodeError:  # bytes of a name here that are no text
        return False


def _no_name(name: str) -> UsageError:
    return UsageError(
        say(
            "{name} is not the name of a dataset; use a-z, 0-9, - and ., beginning with a letter, at most 50 characters",
            name=repr(name),
        )
    )

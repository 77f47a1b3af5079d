"""Check of a bucket's list against the rules for names of files.

No file is written before all names are known to be right.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from mlp_hub.domain.errors import Reason, Refused
from mlp_language.message import msg, some

Parts = tuple[str, ...]
MOST_KEYS = 500_000
"""Limit of data: objects of a source that a dataset is copied from."""
DEEPEST = 64
"""Given: names in a path, as the files of datasets are served."""
NAME_BYTES = 255
"""Given: bytes of a name on a file system."""
_SHOWN = 3
"""Safety: bad keys that are told."""


@dataclass(frozen=True, slots=True)
class SourceObject:
    """An object: its key, its path in the dataset, its size in bytes and the tag of its content."""

    key: str
    parts: Parts
    size: int
    tag: str


@dataclass(frozen=True, slots=True)
class Listing:
    """All objects that become files, and the directories that are named alone."""

    objects: list[SourceObject]
    directories: list[Parts]

    @property
    def size(self) -> int:
        """Bytes of all."""
        return sum(one.size for one in self.objects)


def listed(prefix: str, found: Iterable[tuple[str, int, str]]) -> Listing:
    """Return the files of (key, size, tag) below a prefix.

    Raises `Refused` with the key of an object that cannot be a file.
    """
    objects: list[SourceObject] = []
    directories: list[Parts] = []
    wrong: list[str] = []
    for key, size, tag in found:
        path = below(prefix, key)
        if path is None:
            continue
        alone = path.endswith("/") and not size
        parts = tuple(path.removesuffix("/").split("/")) if alone else tuple(path.split("/"))
        if not path or (alone and parts == ("",)):
            continue  # the prefix itself
        if not is_path(parts) or size < 0:
            wrong.append(key)
        elif alone:
            directories.append(parts)
        else:
            objects.append(SourceObject(key, parts, size, tag))
        if len(objects) + len(directories) + len(wrong) > MOST_KEYS:
            raise Refused(
                Reason.INVALID,
                msg("the source has more than {n} objects; use a longer prefix", n=MOST_KEYS),
            )
    files = {one.parts for one in objects}
    if len(files) < len(objects):
        raise Refused(Reason.INVALID, msg("the source lists an object twice"))
    inner = {one[:n] for one in (*files, *directories) for n in range(1, len(one))} | set(directories)
    wrong += ["/".join(parts) for parts in files & inner]
    if wrong:
        shown = some([_clip(key) for key in sorted(wrong)[:_SHOWN]], len(wrong))
        raise Refused(
            Reason.INVALID,
            msg(
                "these keys cannot become files: {keys}; use names of at most 255 bytes between single /, without . or .. or an encoded /, and no name that is both a file and a directory",
                keys=shown,
            ),
        )
    return Listing(objects, directories)


def below(prefix: str, key: str) -> str | None:
    """Return the path of a key below a prefix; None for another key."""
    if not prefix or prefix.endswith("/"):
        return key[len(prefix) :] if key.startswith(prefix) else None
    if key == prefix:
        return key.rpartition("/")[2]
    return key[len(prefix) + 1 :] if key.startswith(f"{prefix}/") else None


def is_path(parts: Parts) -> bool:
    """Tell whether these names are a path that a dataset may have, and that is reached by its address."""
    if not 0 < len(parts) <= DEEPEST:
        return False
    for part in parts:
        if part in {"", ".", ".."} or "\0" in part or "%2f" in part.lower():
            return False
        try:
            if len(part.encode()) > NAME_BYTES:
                return False
        except UnicodeEncodeError:
            return False
    return os.sep == "/"


def _clip(key: str) -> str:
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in key[:81])
    return text if len(text) <= 80 else f"{text[:80]}..."

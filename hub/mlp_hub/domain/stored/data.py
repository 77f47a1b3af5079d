"""Datasets that a job reads: how each is named, and where its ranks see it; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from mlp_hub.domain.errors import Reason, Refused
from mlp_language.message import Message, msg

DATA = "/data"
"""Where ranks see datasets, each by its name, whatever the executor."""
ROOTS = (DATA, "/datasets", "/mnt")
"""Contract: directories below which a dataset may be seen; of nothing else a program may hide what the platform has there."""
_NAME = re.compile(r"[a-z][a-z0-9.-]{0,49}")
_USER = re.compile(r"(?!\.\.?$)[^/:\s]{1,255}")
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
PART_MAX = 500
"""Limit of data: bytes of the path of a part of a dataset."""
_SHOWN = 100
"""Safety: characters of a bad value that are repeated in the answer."""


@dataclass(frozen=True, slots=True)
class DataUse:
    """Dataset that a job reads: its owner, and its other path for the ranks than below `/data`.

    `uid` is the dataset of the time when the job was submitted. Another dataset that takes the name
    later is not meant.
    """

    user: str
    name: str
    path: str | None = None  # as it was asked for
    uid: str = ""
    part: str = ""  # the path in it that the job needs, of one that is read through; empty: all

    def title(self, reader: str) -> str:
        """How a user's own are named, and others': `digits`, `ann/digits`."""
        return self.name if self.user == reader else f"{self.user}/{self.name}"

    def asked(self, reader: str) -> str:
        """Write it as who reads it asks for it: `ann/digits:train`, `ann/digits/2026/may`."""
        named = f"{self.user}/{self.name}/{self.part}" if self.part else self.title(reader)
        return named + (f":{self.path}" if self.path is not None else "")

    @property
    def default(self) -> str:
        """Where it is seen by its name."""
        return f"{DATA}/{self.name}"

    @property
    def target(self) -> str:
        """Where it is seen first of all."""
        if self.path is None:
            return self.default
        return self.path if self.path.startswith("/") else f"{DATA}/{self.path}"


def parse(text: str, user: str) -> DataUse:
    """Parse `NAME[:PATH]`, `USER/NAME[:PATH]` or `USER/NAME/PART[:PATH]` of a user; else raise `Refused`."""
    whose, colon, path = text.partition(":")
    owner, name, part = (*whose.split("/", 2), "", "")[:3] if "/" in whose else (user, whose, "")
    if not _NAME.fullmatch(name) or not _USER.fullmatch(owner) or not _is_part(part):
        _refuse(
            msg(
                "data {given} does not name a dataset; write NAME, USER/NAME, or either with :PATH, such as digits:train; for a dataset that is read through also USER/NAME/PART",
                given=_clip(text),
            )
        )
    if not colon:
        return DataUse(owner, name, part=part)
    use = DataUse(owner, name, path.rstrip("/"), part=part)
    _check_path(text, use.target)
    return use


def _is_part(part: str) -> bool:
    """Tell whether this is a path in a dataset, or nothing."""
    return not part or (
        len(part.encode(errors="replace")) <= PART_MAX
        and part.isprintable()
        and all(each not in {"", ".", ".."} for each in part.split("/"))
    )


def _check_path(text: str, target: str) -> None:
    root = next((root for root in ROOTS if target.startswith(f"{root}/")), None)
    parts = [] if root is None else target.removeprefix(f"{root}/").split("/")
    if not parts or len(target) > 200 or not all(_PART.fullmatch(part) for part in parts):
        _refuse(
            msg(
                "data {given} cannot be placed there; write a path below {roots} of letters, digits, ., - and _, without ..; a path that does not begin with / is below {data}",
                given=_clip(text),
                roots=", ".join(ROOTS),
                data=DATA,
            )
        )


def targets(uses: Sequence[DataUse], reader: str) -> Mapping[str, DataUse]:
    """Return what is seen where; raise `Refused` where two would be in one place, or one within another.

    One that was asked for at another path is seen by its name too, unless that place is another's.
    """
    seen: dict[str, DataUse] = {}
    for use in uses:
        for path, other in seen.items():
            if _meet(path, use.target):
                _refuse(
                    msg(
                        "data {one} and {other} would both be at {path}; give one of them another path, such as {name}:PATH",
                        one=use.asked(reader),
                        other=other.asked(reader),
                        path=use.target,
                        name=use.title(reader),
                    )
                )
        seen[use.target] = use
    for use in uses:
        if not any(_meet(path, use.default) for path in seen):
            seen[use.default] = use
    return seen


def _meet(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def with_uid(use: DataUse, uid: str) -> DataUse:
    """Return it as that of a dataset that is there."""
    return replace(use, uid=uid)


def _clip(text: str) -> str:
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[:_SHOWN])
    return shown if len(text) <= _SHOWN else f"{shown}..."


def _refuse(text: Message) -> NoReturn:
    raise Refused(Reason.INVALID, text)

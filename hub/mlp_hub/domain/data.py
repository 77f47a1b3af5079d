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
_SHOWN = 100
"""Safety: characters of a bad value that are repeated in the answer."""


@dataclass(frozen=True, slots=True)
class DataUse:
    """One dataset that a job reads: whose it is, and where else than below `/data` its ranks see it.

    `uid` is what was there when the job was submitted: another dataset that takes the name later is not meant.
    """

    user: str
    name: str
    path: str | None = None  # as it was asked for
    uid: str = ""

    def title(self, reader: str) -> str:
        """How a user's own are named, and others': `digits`, `ann/digits`."""
        return self.name if self.user == reader else f"{self.user}/{self.name}"

    def asked(self, reader: str) -> str:
        """Write it as who reads it asks for it: `ann/digits:train`."""
        return self.title(reader) + (f":{self.path}" if self.path is not None else "")

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
    """Read `NAME[:PATH]` or `USER/NAME[:PATH]` of a user; raise `Refused` for what is none."""
    whose, colon, path = text.partition(":")
    owner, slash, name = whose.rpartition("/")
    if not slash:
        owner = user
    if not _NAME.fullmatch(name) or not _USER.fullmatch(owner):
        _refuse(
            msg(
                "data {given} names no dataset; right: NAME, USER/NAME, or either with :PATH behind it, as in digits:train",
                given=_clip(text),
            )
        )
    if not colon:
        return DataUse(owner, name)
    use = DataUse(owner, name, path.rstrip("/"))
    _check_path(text, use.target)
    return use


def _check_path(text: str, target: str) -> None:
    root = next((root for root in ROOTS if target.startswith(f"{root}/")), None)
    parts = [] if root is None else target.removeprefix(f"{root}/").split("/")
    if not parts or len(target) > 200 or not all(_PART.fullmatch(part) for part in parts):
        _refuse(
            msg(
                "data {given} cannot be seen there; right: a path below {roots} of letters, digits, ., - and _, without ..; "
                "one that does not begin with / is below {data}",
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
                        "data {one} and {other} would both be seen at {path}; give one of them another path, as {name}:PATH",
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

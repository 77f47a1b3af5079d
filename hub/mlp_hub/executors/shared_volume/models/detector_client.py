"""Requests to a separate process for the formats of models, which it finds by parsing programs' files.

Each user has one process at a time, and few run at once. It ends when its caller stops asking.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Annotated

import msgspec

from mlp_hub import helpers
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.stored.model import ModelFormat
from mlp_hub.executors.shared_volume.models.format_names import KNOWN_FORMATS
from mlp_hub.pools import FairPool, FairTurns
from mlp_hub.safe_path import DirHandle
from mlp_language.message import msg

TOGETHER = 2
"""Safety: processes that look at a time: each takes a core and `MEMORY`, beside what the service does."""
MEMORY = 512 << 20
"""Safety: bytes of address space of one."""
CPU_S = 10
"""Safety: seconds of processor time of one."""
TIME_S = 30.0
"""Safety: seconds after which one is ended: a disk may hang."""
ANSWER = 256 << 10
"""Safety: bytes of an answer: the results of twenty places, however long their names."""

_Text = Annotated[str, msgspec.Meta(max_length=2000)]


class _FoundModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model as the process tells it, at its path."""

    at: Annotated[str, msgspec.Meta(max_length=5000)]
    name: _Text = ""
    main: _Text = ""
    pickled: bool = False
    facts: Annotated[dict[_Text, _Text], msgspec.Meta(max_length=20)] = {}
    seen: Annotated[list[_Text], msgspec.Meta(max_length=20)] = []
    below: Annotated[list[_Text], msgspec.Meta(max_length=20)] = []


_decoder = msgspec.json.Decoder(Annotated[list[_FoundModel], msgspec.Meta(max_length=100)])


class ModelLooks:
    """Looks at the files of directories, which `pool` opens."""

    def __init__(self, pool: FairPool) -> None:
        self._pool = pool
        self._turns = FairTurns(TOGETHER, 1)

    async def recognise(self, user: str, where: Callable[[], AbstractContextManager[Path]]) -> ModelFormat:
        """Tell what the files below a directory are. Raises `Refused` where that takes too much."""
        return (await self._ask(user, "one", where))[0][1]

    async def models_in(
        self, user: str, where: Callable[[], AbstractContextManager[Path]]
    ) -> Sequence[tuple[str, ModelFormat]]:
        """Return the models that lie below a directory, each with its path. Raises `OSError`, and `Refused` as above."""
        return await self._ask(user, "all", where)

    async def _ask(
        self, user: str, what: str, where: Callable[[], AbstractContextManager[Path]]
    ) -> list[tuple[str, ModelFormat]]:
        async with self._turns.turn(user):
            held = ExitStack()  # of what was opened, also where who asks went away meanwhile
            try:
                said = await self._run(what, await self._pool.run(user, _open, held, where))
            finally:
                await asyncio.shield(self._pool.run(user, held.close))
        try:
            return [(one.at, _format(one)) for one in _decoder.decode(said)]
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise _too_much() from None

    @staticmethod
    async def _run(what: str, top: int) -> bytes:
        within = helpers.Confinement(_uid_of(top), MEMORY, CPU_S)
        process = await asyncio.create_subprocess_exec(
            *helpers.command("mlp_hub.executors.shared_volume.models.detector", within, what, str(top)),
            stdin=asyncio.subprocess.PIPE,  # DEVNULL is a file, which is opened on the loop
            pass_fds=(top,),
            stdout=asyncio.subprocess.PIPE,
            env=helpers.environment(),
            cwd="/",
            start_new_session=True,
        )
        assert process.stdout is not None  # noqa: S101 - it was started with one
        said = b""
        try:
            async with asyncio.timeout(TIME_S):
                while len(said) <= ANSWER and (part := await process.stdout.read(ANSWER)):
                    said += part
                if len(said) <= ANSWER:
                    await process.wait()
        except TimeoutError:
            raise _too_much() from None
        finally:
            if process.returncode is None:
                process.kill()
            await asyncio.shield(process.wait())
        return said[: ANSWER + 1]


def _open(held: ExitStack, where: Callable[[], AbstractContextManager[Path]]) -> int:
    return held.enter_context(DirHandle.at(held.enter_context(where()))).fd


def _uid_of(top: int) -> int | None:
    """Return as whom to look where the hub is root: as whose it is, who may read it all, or as nobody where it is the platform's.

    The directory of a run is root's, and of the group that its user has alone, whose number is theirs.
    """
    if os.geteuid() != 0:
        return None
    found = os.fstat(top)
    return found.st_uid or found.st_gid or NOBODY


NOBODY = 65_534
"""Given: a user that owns nothing, for files that everybody may read."""


def _format(one: _FoundModel) -> ModelFormat:
    if one.name and one.name not in KNOWN_FORMATS:
        raise _too_much()
    return ModelFormat(one.name, one.main, one.pickled, one.facts, tuple(one.seen), tuple(one.below))


def _too_much() -> Refused:
    return Refused(
        Reason.INVALID,
        msg(
            "the inspection of its files needs more than {n} s or too much memory; move files that are not models elsewhere",
            n=CPU_S,
        ),
    )

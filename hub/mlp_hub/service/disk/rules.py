"""Rules for a disk that is too full and the jobs stopped for it: plain functions of sizes in bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.facts import Fact
from mlp_hub.executors.workspace import Size, Space
from mlp_hub.scheduler.model.types import Verdict
from mlp_hub.service.config import DiskPolicy
from mlp_language.message import Message, Quantity, Span, msg, msgs

MIB = 2**20
"""Given: bytes of a MiB."""
GIB = 2**30
"""Given: bytes of a GiB."""
ALL = 2**63
"""Given: bytes that are more than any disk has."""
SHARE = 20
"""Safety: divisor of the file system's size that gives the floor without a setting, within the bounds below: one writer does
not fill the disk for all."""
LEAST_FLOOR, MOST_FLOOR = GIB, 10 * GIB
BOUND_SHARE = 5
"""Safety: divisor of the file system's size that bounds one job, one home, and the floor, without a setting: one writer does
not fill the disk for all."""
FULL_IN_S = 600.0
"""Safety: seconds; below the floor a writer is stopped if the rest would last it for less than that."""
LITTLE = 100
"""Safety: divisor of the floor; stopping a writer that wrote less than that is not worth it."""
SHRINKS = 0.9
"""Safety: part of the free space; when less is left after one writer was stopped, another one is."""
NAME_BYTES = 4096
"""Given: bytes that a name counts at least, as whoever measures homes and jobs' directories has it."""
MUCH_OF_NAMES = 10
"""Tuning: part of a size from which on names of small files are mentioned: else people look for large ones."""
WINDOW_S = 60.0
"""Tuning: seconds over which growth is measured: steadier when longer, sooner when shorter."""


def policy_for(total: int, floor: int | None, job: int | None, home: int | None) -> DiskPolicy:
    """Return the policy for a file system of that size; limits that are None become a share of it."""
    share = total // BOUND_SHARE
    return DiskPolicy(
        min(max(total // SHARE, LEAST_FLOOR), MOST_FLOOR, share) if floor is None else floor,
        share if job is None else job,
        share if home is None else home,
    )


def shortage(space: Space, floor: int) -> Message | None:
    """Return the message about a shortage below the floor, with its amount; None if there is enough."""
    if space.free < floor:
        return msg(
            "{free} left, less than the {floor} that are kept free", free=_mib(space.free), floor=_mib(floor)
        )
    if floor and space.files and space.files_free * SHARE < space.files:
        return msg(
            "room for {n} more files, less than one in {share} of its {files}",
            n=space.files_free,
            share=SHARE,
            files=space.files,
        )
    return None


def shortage_at_half(space: Space, floor: int) -> Message | None:
    """Say the same where there is not even half of it."""
    short = shortage(space, floor)
    return short if shortage(replace(space, files_free=2 * space.files_free), floor // 2) else None


@dataclass(frozen=True, slots=True)
class DiskWriter:
    """A job, or the notebook servers of a user, with the bytes written in the last `over_s` seconds.

    `over_s` is at most a minute.
    """

    uid: str | None  # of the job; None: the notebook servers
    user: str
    grown: int
    over_s: float

    @property
    def rate(self) -> float:
        """Bytes a second."""
        return self.grown / max(self.over_s, 1.0)


def fastest(writers: Iterable[DiskWriter], free: int, floor: int) -> DiskWriter | None:
    """Return the writer to stop below the floor: the fastest of the last minute, if a stop of it helps.

    It does not help if the rest of the disk lasts the writer for long, or if it wrote almost nothing.
    """
    first = max(writers, key=lambda w: w.rate, default=None)
    if first is None or first.rate * FULL_IN_S < free or first.grown * LITTLE < floor:
        return None
    return first


def who_fills(
    by_growth: Iterable[DiskWriter],
    by_writes: Iterable[DiskWriter],
    lost: tuple[int, float],
    free: int,
    floor: int,
) -> DiskWriter | None:
    """Return the writer to stop below the floor: the fastest growing directory, if that is most of `lost`.

    `lost` is the loss of the disk. Otherwise the growth is in no directory, or in one that takes long
    to measure. Then it is the writer of most of it, if there is one.
    """
    first, all_of_it = fastest(by_growth, free, floor), DiskWriter(None, "", *lost)
    explained = first is not None and 2 * first.rate >= all_of_it.rate
    if explained or fastest([all_of_it], free, floor) is None:
        return first
    most = max(by_writes, key=lambda w: w.grown, default=None)
    return first if most is None or 2 * most.grown < all_of_it.grown else most


def no_room(what: Message, space: Space, floor: int, *, servers: bool = True) -> Verdict:
    """Return the verdict on a full disk for a request, with the remedy; `servers`: these still start."""
    first = msg("No job starts") if servers else msg("Nothing starts")
    headline = msg("{what}: the disk is nearly full. Delete jobs that ended.", what=first)
    facts = (
        Fact("free_mib", _mib(space.free)),
        Fact("floor_mib", _mib(floor)),
        Fact("shortage", what),
    )
    return Verdict(Reason.DISK_FULL, headline, facts)


def home_is_full(user: str, size: Size, bound: int) -> Refused:
    """Refuse a job whose user's home is over its bound."""
    return Refused(
        Reason.DISK_FULL,
        msg(
            "the home of {user} holds {used}, more than the limit of {bound}: delete files in it, or ask the administrator for more; it is measured again in a minute at the latest",
            user=user,
            used=_what_it_holds(size),
            bound=_mib(bound),
        ),
    )


def fills_the_disk(writer: DiskWriter, shortage: Message) -> Message:
    """Say why somebody who writes is stopped below the floor."""
    return msg(
        "the disk had {shortage}, and {who} had written {size} in the last {time}",
        shortage=shortage,
        who=msg("this job") if writer.uid is not None else msg("the notebook of {user}", user=writer.user),
        size=_mib(writer.grown),
        time=msg("minute") if writer.over_s > WINDOW_S * 0.9 else Span(round(max(writer.over_s, 1.0))),
    )


def job_over_its_bound(size: Size, most: int) -> Message | None:
    """Return the reason why a job is stopped for the size of its directory; None if it is within its bound."""
    if size.unseen is not None:
        return msg(
            "its directory cannot be measured, because it holds {unseen}; make fewer of them",
            unseen=size.unseen,
        )
    if size.used <= most:
        return None
    return msg(
        "it uses {used} of the disk, and the limit of a job is {bound}; write less, or ask the administrator for more",
        used=_what_it_holds(size),
        bound=_mib(most),
    )


def home_over_its_bound(user: str, size: Size, most: int) -> Message:
    """Say why who writes to a home is stopped, once it is over its bound."""
    if size.unseen is not None:
        return msg(
            "the home of {user} cannot be measured, because it holds {unseen}; delete files in it, or ask the administrator for more",
            user=user,
            unseen=size.unseen,
        )
    return msg(
        "the home of {user} holds {used}, and the limit of a home is {bound}; delete files in it, or ask the administrator for more",
        user=user,
        used=_what_it_holds(size),
        bound=_mib(most),
    )


def home_cannot_be_measured(user: str, unseen: Message) -> Refused:
    """Refuse a job whose user's home has more in it than is looked at."""
    return Refused(
        Reason.DISK_FULL,
        msg(
            "the home of {user} cannot be measured, because it holds {unseen}: delete or pack some of them; it is measured again in a minute at the latest",
            user=user,
            unseen=unseen,
        ),
    )


def _what_it_holds(size: Size) -> Quantity | Message:
    """Return the size, and where much of it is for names alone, as of empty files, how many those are."""
    if size.small * NAME_BYTES * MUCH_OF_NAMES < size.used:
        return _mib(size.used)
    return msgs(
        "{all} (of which {n} name of a small file counts {each})",
        "{all} (of which {n} names of small files count {each} each)",
        n=size.small,
        all=_mib(size.used),
        each=Quantity(NAME_BYTES // 1024, "KiB"),
    )


def _mib(size: int) -> Quantity:
    return Quantity(size // MIB, "MiB")

"""Storage of notices, in the transaction of their events: a notice exists exactly if its event does, once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, tzinfo
from zoneinfo import ZoneInfo

from mlp_hub.domain.jobs.job import Job
from mlp_hub.domain.notices.notice import (
    AskedFor,
    Notice,
    NoticeChoice,
    NoticeKind,
    QuietHours,
    kinds_of,
    wanted,
)
from mlp_hub.pools import WorkKind, run_in
from mlp_hub.service.state.moves import Move
from mlp_hub.store.tx import Tx
from mlp_language.message import Message


class Outbox:
    """Subscriptions in memory as stored, so that users without any cost nothing.

    Only the service that leads writes it.
    """

    def __init__(self, stored: Callable[[set[str]], None], clock: Callable[[], float]) -> None:
        self._wants: dict[str, frozenset[NoticeKind]] = {}
        self._stored, self._clock = stored, clock

    def load(self, tx: Tx) -> None:
        """Read who wants what."""
        choices = {one.user: one for one in tx.notices.choices()}
        channels = tx.notices.channels()
        users = choices.keys() | {one.user for one in channels}
        self._wants = {
            user: wanted(choices.get(user, NoticeChoice(user)), [c for c in channels if c.user == user])
            for user in users
        }

    def wants(self, user: str) -> frozenset[NoticeKind]:
        """Return what somebody wants to be told."""
        return self._wants.get(user, frozenset())

    def change(self, user: str, kinds: frozenset[NoticeKind]) -> None:
        """Store a user's subscriptions from now on."""
        self._wants = {**self._wants, user: kinds} if kinds else _without(self._wants, user)

    @property
    def late(self) -> frozenset[str]:
        """Users with a subscription to late starts."""
        return frozenset(user for user, kinds in self._wants.items() if NoticeKind.LATE in kinds)

    def moved(self, tx: Tx, moves: Sequence[Move], now: float) -> set[str]:
        """Store the notices of these moves; return their users."""
        found: list[Notice] = []
        for move in moves:
            job = move.new
            kinds = self._wants.get(job.spec.user)
            if not kinds or job.spec.replica is not None or job.spec.trial is not None:
                continue  # of a sweep's trials there are hundreds
            steps = (*move.through, (job.phase, move.step))
            for phase, step in steps:
                for kind in kinds_of((phase,)):
                    resized = kind is NoticeKind.STARTED and job.ran_before > 0
                    if kind in kinds and not resized:
                        text = (
                            _for_whom(tx, job.uid, step.message)
                            if kind is NoticeKind.PREEMPTED
                            else step.message
                        )
                        found.append(notice_of(job, kind, now, text))
        tx.notices.add(found)
        return {one.user for one in found}

    def wanting(self, kind: NoticeKind) -> list[str]:
        """Return the users with a subscription to a kind of notice, in order."""
        return sorted(user for user, kinds in self._wants.items() if kind in kinds)

    def asked(
        self, tx: Tx, users: Iterable[str], what: tuple[NoticeKind, AskedFor], tenant: str, text: Message
    ) -> set[str]:
        """Store notices of a request for the users who have a subscription; return those users."""
        now, (kind, about) = self._clock(), what
        found = [
            Notice(0, user, kind, "", about.value, 1, tenant, now, text)
            for user in sorted(set(users))
            if kind in self._wants.get(user, ())
        ]
        tx.notices.add(found)
        return {one.user for one in found}

    def about_job(self, tx: Tx, job: Job, kind: NoticeKind, text: Message) -> set[str]:
        """Store a notice about a job for its owner, if they have a subscription; return the owner then."""
        if kind not in self._wants.get(job.spec.user, ()) or job.spec.trial is not None:
            return set()
        tx.notices.add([notice_of(job, kind, self._clock(), text)])
        return {job.spec.user}

    def notify(self, users: set[str]) -> None:
        """Request a look at the users with new notices, now that these are durable."""
        if users:
            self._stored(users)


def notice_of(job: Job, kind: NoticeKind, now: float, text: Message) -> Notice:
    """Return a notice that has no number yet."""
    return Notice(0, job.spec.user, kind, job.uid, job.spec.name, job.run, job.spec.tenant, now, text)


async def zone_of(name: str) -> ZoneInfo:
    """Return a time zone, which is a file."""
    return await run_in(WorkKind.ZONES, ZoneInfo, name)


def quiet_for(quiet: QuietHours | None, zone: tzinfo, now: float) -> float:
    """Return for how many seconds it is quiet yet, where somebody lives; 0: it is not."""
    if quiet is None:
        return 0.0
    there = datetime.fromtimestamp(now, zone)
    minute = there.hour * 60 + there.minute + there.second / 60
    return quiet.left(minute) * 60


def _for_whom(tx: Tx, uid: str, otherwise: Message) -> Message:
    """Return why a job gives way: that was written into its timeline when it was decided, before its ranks are asked to end."""
    steps = [one for _, found in tx.events.of_kinds((uid,), ("preempted",)) for one in found]
    return steps[-1].message if steps else otherwise


def _without(wants: dict[str, frozenset[NoticeKind]], user: str) -> dict[str, frozenset[NoticeKind]]:
    return {name: kinds for name, kinds in wants.items() if name != user}

"""People's choices of notices, their new notices, and late starts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from zoneinfo import ZoneInfoNotFoundError

from mlp_api.localized import Detail, Text
from mlp_api.platform import notices as api
from mlp_api.terms import NoticeEvent
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.notices.notice import (
    WITHOUT_JOB,
    Channel,
    ChannelKind,
    Notice,
    NoticeChoice,
    NoticeKind,
    QuietHours,
    wanted,
)
from mlp_hub.service.config import NoticePolicy
from mlp_hub.service.forecast.service import Forecasts
from mlp_hub.service.lifecycle.workqueue import WorkQueue
from mlp_hub.service.notices.addresses import parsed
from mlp_hub.service.notices.outbox import Outbox, notice_of, quiet_for, zone_of
from mlp_hub.service.notices.sender import Sender
from mlp_hub.service.notices.worker import NoticeWorker, title_of
from mlp_hub.service.secrets.service import SecretService
from mlp_hub.service.state.board import Board
from mlp_hub.service.support.units import maybe_when, when
from mlp_hub.store.repos.audit_chain import OF_CHANNELS
from mlp_hub.store.tx import Tx
from mlp_language.message import Moment, msg
from mlp_language.render import Reader


class NoticeService:
    """Use cases of notices. Whether who asks may is for the caller to say."""

    def __init__(
        self,
        queue: WorkQueue,
        board: Board,
        forecasts: Forecasts,
        secrets: SecretService,
        *,
        clock: Callable[[], float],
        policy: NoticePolicy,
        first_uid: int | None = None,
    ) -> None:
        """`first_uid` is as the policy of runs has it."""
        self._board, self._db, self._forecasts = board, board.db, forecasts
        self._secrets, self._clock, self._policy = secrets, clock, policy
        self._sender = Sender(policy, first_uid)
        self._worker = NoticeWorker(queue, self._db, secrets, self._sender, clock=clock, policy=policy)
        self.on_sent = self._worker.on_sent
        self._outbox = self.outbox = Outbox(self._look, clock)
        self._expected: dict[str, float] = {}  # by job that waits, the start that was expected first
        self._testing: set[str] = set()

    async def start(self) -> None:
        """Load the notices to send, after any crash."""
        users = await self._db.read(self._load)
        self._board.notices = self._outbox
        self._look(users)

    async def stop(self) -> None:
        """Send no more."""
        self._board.notices = None
        await self._sender.stop()

    async def get(self, user: str) -> api.Notifications:
        """Return what somebody chose."""
        choice, channels = await self._db.read(
            lambda tx: (tx.notices.choice(user), tx.notices.channels(user))
        )
        quiet = choice.quiet
        return api.Notifications(
            browser=_events(choice.browser),
            quiet=None
            if quiet is None
            else api.QuietTime(begin=_clock(quiet.begin), until=_clock(quiet.end)),
            timezone=choice.zone,
            channels=[_shown(one) for one in channels],
            mail=self._policy.mail is not None,
            services=list(self._policy.services),
        )

    async def store_choices(self, user: str, asked: api.NotificationsSet, actor: str) -> api.Notifications:
        """Store all that somebody chooses. Raises `Refused`."""
        choice = NoticeChoice(user, _kinds(asked.browser), _quiet(asked.quiet), await _zone(asked.timezone))
        names = [one.name for one in asked.channels]
        if len(set(names)) < len(names):
            raise Refused(Reason.INVALID, msg("two channels have one name; give each its own"))
        fresh = await self._all_made(user, [one for one in asked.channels if one.address is not None])
        given = {one.name: one for one in fresh}
        now = self._clock()

        def work(tx: Tx) -> tuple[Channel, ...]:
            tx.users.ensure(user, now)
            known = {one.name: one for one in tx.notices.channels(user)}
            newest, kept = tx.notices.newest(user), []
            for one in asked.channels:
                old = given.get(one.name) or known.get(one.name)
                if old is None:
                    raise Refused(
                        Reason.INVALID, msg("channel {name} is new and has no address", name=one.name)
                    )
                new = replace(old, events=_kinds(one.events))
                if one.name in given or new.events != known[one.name].events:
                    # of what it did not want before it tells nothing now
                    new = replace(new, changed_at=now, sent=newest)
                tx.notices.put_channel(new)
                kept.append(new)
            tx.notices.remove_channels(user, known.keys() - set(names))
            tx.notices.choose(choice)
            listed = ", ".join(f"{one.name} ({one.shown})" for one in kept)
            tx.audit.add(now, actor, OF_CHANNELS, user, detail={"channels": listed})
            return tuple(kept)

        kept = await self._db.write(work)
        self._outbox.change(user, wanted(choice, kept))
        self._look({user})
        return await self.get(user)

    async def try_out(self, user: str, name: str) -> api.ChannelTested:
        """Send something by a channel at once, also when it is quiet, and store the result. Raises `NotFound`, `Refused`."""
        choice, channels = await self._db.read(
            lambda tx: (tx.notices.choice(user), tx.notices.channels(user))
        )
        found = next((one for one in channels if one.name == name), None)
        if found is None:
            raise not_found("channel", name)
        with self._one_at_a_time(user):
            text = msg("This is how MLP Hub notifies you of your jobs. Nothing has happened.")
            test = Notice(0, user, NoticeKind.FINISHED, "", "test", 1, "", self._clock(), text)
            trouble = await self._worker.send(found, [test], Reader(zone=await zone_of(choice.zone)))
            now = self._clock()
            await self._db.write(lambda tx: tx.notices.note_tested(found, now, trouble))
        return api.ChannelTested(taken=trouble is None, trouble=None if trouble is None else Text(trouble))

    async def new(self, user: str, after: int | None, limit: int) -> list[api.Notice]:
        """Return what is told in the browser after a number, the oldest first; without a number the newest alone."""

        def work(tx: Tx) -> tuple[NoticeChoice, list[Notice]]:
            choice = tx.notices.choice(user)
            since = tx.notices.newest(user) - 1 if after is None else after
            kinds = None if after is None else choice.browser
            return choice, tx.notices.after(user, since, limit, kinds)

        choice, found = await self._db.read(work)
        quiet = quiet_for(choice.quiet, await zone_of(choice.zone), self._clock()) > 0
        return [_to_wire(one, quiet=quiet) for one in found]

    async def remove(self, user: str) -> bool:
        """Forget all data of a user who leaves: neither they nor a later user of the same name gets notices."""
        await self._db.write(lambda tx: tx.notices.remove_all(user))
        self._outbox.change(user, frozenset())
        return True

    async def notice_late_starts(self) -> None:
        """Tell of starts that are late, and forget what is old."""
        now = self._clock()
        users = self._outbox.late
        waiting = {
            uid: job
            for uid, job in self._board.waiting.items()
            if users and job.spec.user in users and job.spec.replica is None
        }
        self._expected = {uid: at for uid, at in self._expected.items() if uid in waiting}
        if waiting:
            self._forecasts.look_soon()
        for uid, job in waiting.items():
            at = self._forecasts.start_of(job)
            if at is not None:
                self._expected.setdefault(uid, at)
        late = [uid for uid, at in self._expected.items() if at <= now]

        def work(tx: Tx) -> set[str]:
            found = []
            for uid in late:
                job = waiting[uid]
                since = job.waiting_since or job.submitted_at
                if tx.notices.told_since(uid, NoticeKind.LATE, since):
                    continue
                text = msg(
                    "Its start was expected for {at}; it has not started yet.",
                    at=Moment(self._expected[uid], now),
                )
                found.append(notice_of(job, NoticeKind.LATE, now, text))
            tx.notices.add(found)
            tx.notices.delete_before(now - self._policy.keep_s)
            return {one.user for one in found}

        self._look(await self._db.write(work))

    # ---------------------------------------------------------- internals

    def _load(self, tx: Tx) -> set[str]:
        self._outbox.load(tx)
        return {one.user for one in tx.notices.channels()}

    def _look(self, users: set[str]) -> None:
        for user in users:
            self._worker.look_at(user)

    @contextlib.contextmanager
    def _one_at_a_time(self, user: str) -> Iterator[None]:
        """Let nobody take the turns of others: names of hosts may be slow to look up, and servers to answer."""
        if user in self._testing:
            raise Refused(Reason.WRONG_STATE, msg("a channel of yours is being tested; wait for it"))
        self._testing.add(user)
        try:
            yield
        finally:
            self._testing.discard(user)

    async def _all_made(self, user: str, asked: list[api.ChannelSet]) -> list[Channel]:
        if not asked:
            return []
        with self._one_at_a_time(user):
            return [await self._made(user, one) for one in asked]

    async def _made(self, user: str, asked: api.ChannelSet) -> Channel:
        assert asked.address is not None  # noqa: S101 - who calls has looked
        kind, address, shown = parsed(asked.address, self._policy)
        if kind is not ChannelKind.MAIL:
            service = await self._sender.service_of(address)
            if service is not None:
                kind, shown = ChannelKind.SERVICE, service
            elif kind is ChannelKind.SERVICE:
                raise Refused(
                    Reason.INVALID,
                    msg("this is not a valid address of {service}; see how Apprise writes it", service=shown),
                )
        new = Channel(user, asked.name, kind, shown, (), b"", 0, 0.0)
        return replace(new, sealed=self._secrets.sealed(address.encode(), new.bound))


def _events(kinds: tuple[NoticeKind, ...]) -> list[NoticeEvent]:
    return [one.value for one in kinds]


def _kinds(events: list[NoticeEvent]) -> tuple[NoticeKind, ...]:
    return tuple(kind for kind in NoticeKind if kind.value in events)


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _quiet(asked: api.QuietTime | None) -> QuietHours | None:
    if asked is None:
        return None
    begin, end = (int(t[:2]) * 60 + int(t[3:]) for t in (asked.begin, asked.until))
    if begin == end:
        raise Refused(
            Reason.INVALID, msg("quiet hours begin and end at {at}; choose two times", at=asked.begin)
        )
    return QuietHours(begin, end)


async def _zone(name: str) -> str:
    try:
        await zone_of(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Refused(
            Reason.INVALID,
            msg("time zone {name} does not exist; write a name such as Europe/Berlin", name=name),
        ) from None
    return name


def _shown(one: Channel) -> api.NoticeChannel:
    return api.NoticeChannel(
        name=one.name,
        kind=one.kind.value,
        shown=one.shown,
        events=_events(one.events),
        told_at=maybe_when(one.told_at),
        trouble=None if one.trouble is None else Text(one.trouble),
    )


def _to_wire(one: Notice, *, quiet: bool) -> api.Notice:
    return api.Notice(
        id=one.id,
        event=one.kind.value,
        job="" if one.kind in WITHOUT_JOB else one.name,
        run=one.run,
        tenant=one.tenant,
        at=when(one.at),
        title=Text(title_of(one)),
        text=Text(one.text),
        detail=Detail(one.text),
        quiet=quiet,
    )

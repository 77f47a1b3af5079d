"""Notices to people about their jobs, and their channels."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import Row, delete, func, literal, select, update

from mlp_hub.domain.notices.notice import Channel, ChannelKind, Notice, NoticeChoice, NoticeKind, QuietHours
from mlp_hub.store import codec
from mlp_hub.store.repos.base import Repo
from mlp_hub.store.tables import notice as n
from mlp_hub.store.tables import notice_channel as c
from mlp_hub.store.tables import notice_choice as t


class Notices(Repo):
    """The notices, the channels that they go to and what else was chosen."""

    __slots__ = ()

    def choices(self) -> list[NoticeChoice]:
        """Return all that was chosen."""
        return [_choice(row) for row in self._c.execute(select(t))]

    def choice(self, user: str) -> NoticeChoice:
        """Return a user's choice; without one, it has no kinds of notices."""
        row = self._c.execute(select(t).where(t.c.user == user)).first()
        return NoticeChoice(user) if row is None else _choice(row)

    def choose(self, new: NoticeChoice) -> None:
        """Store what somebody chose."""
        values = {
            "user": new.user,
            "browser": codec.dumps(new.browser),
            "quiet_begin": None if new.quiet is None else new.quiet.begin,
            "quiet_end": None if new.quiet is None else new.quiet.end,
            "zone": new.zone,
        }
        self._c.execute(self._upsert(t, ("user",)), values)

    def channels(self, user: str | None = None) -> list[Channel]:
        """Return the channels of somebody, or of all, by name."""
        query = select(c).order_by(c.c.user, c.c.name)
        return [
            _channel(row) for row in self._c.execute(query if user is None else query.where(c.c.user == user))
        ]

    def put_channel(self, new: Channel) -> None:
        """Store a channel, new or changed."""
        values = {
            "user": new.user,
            "name": new.name,
            "kind": new.kind.value,
            "shown": new.shown,
            "events": codec.dumps(new.events),
            "sealed": new.sealed,
            "sent": new.sent,
            "changed_at": new.changed_at,
            **_channel_row(new),
        }
        self._c.execute(self._upsert(c, ("user", "name")), values)

    def note_sent(self, new: Channel) -> None:
        """Store how sending went, unless the channel was changed meanwhile."""
        mine = update(c).where(c.c.user == new.user, c.c.name == new.name, c.c.changed_at == new.changed_at)
        self._c.execute(mine.values(sent=new.sent, **_channel_row(new)))

    def remove_channels(self, user: str, names: Collection[str]) -> None:
        """Forget channels of somebody."""
        self._c.execute(delete(c).where(c.c.user == user, c.c.name.in_(sorted(names))))

    def add(self, notices: Iterable[Notice]) -> None:
        """Store notices; each is given its number."""
        rows = [
            {
                "user": one.user,
                "kind": one.kind.value,
                "job": one.uid,
                "name": one.name,
                "run": one.run,
                "tenant": one.tenant,
                "at": one.at,
                "text": codec.message_text(one.text),
            }
            for one in notices
        ]
        if rows:
            self._c.execute(n.insert(), rows)

    def newest(self, user: str) -> int:
        """Return the number of somebody's newest notice; 0: there is none."""
        query = select(func.coalesce(func.max(n.c.id), 0)).where(n.c.user == user)
        return int(self._c.execute(query).scalar_one())

    def after(
        self, user: str, sent: int, limit: int, kinds: Collection[NoticeKind] | None = None
    ) -> list[Notice]:
        """Return somebody's notices after a number, of these kinds, the oldest first."""
        query = select(n).where(n.c.user == user, n.c.id > sent).order_by(n.c.id).limit(limit)
        if kinds is not None:
            query = query.where(n.c.kind.in_(sorted(kinds)))
        return [_notice(row) for row in self._c.execute(query)]

    def behind(self) -> tuple[int, float | None]:
        """Return how many notices wait to be sent, counted for each channel, and the time of the oldest."""
        wanted = c.c.events.like(literal('%"') + n.c.kind + literal('"%'))
        query = select(func.count(), func.min(n.c.at)).where(n.c.user == c.c.user, n.c.id > c.c.sent, wanted)
        number, oldest = self._c.execute(query.select_from(c)).one()
        return int(number), oldest

    def told_since(self, uid: str, kind: NoticeKind, since: float) -> bool:
        """Return whether a notice of a job was stored since a time."""
        query = select(n.c.id).where(n.c.job == uid, n.c.kind == kind.value, n.c.at >= since)
        return self._c.execute(query.limit(1)).first() is not None

    def delete_before(self, before: float) -> int:
        """Forget notices that are older; return how many."""
        return int(self._c.execute(delete(n).where(n.c.at < before)).rowcount)

    def remove_all(self, user: str) -> None:
        """Forget all of somebody."""
        for table in (n, c, t):
            self._c.execute(delete(table).where(table.c.user == user))


def _channel_row(channel: Channel) -> dict[str, Any]:
    return {
        "tries": channel.tries,
        "next_at": channel.next_at,
        "told_at": channel.told_at,
        "trouble": None if channel.trouble is None else codec.message_text(channel.trouble),
    }


def _kinds(text: str) -> tuple[NoticeKind, ...]:
    return tuple(NoticeKind(one) for one in codec.loads(text))


def _choice(row: Row[Any]) -> NoticeChoice:
    quiet = None if row.quiet_begin is None else QuietHours(row.quiet_begin, row.quiet_end)
    return NoticeChoice(row.user, _kinds(row.browser), quiet, row.zone)


def _channel(row: Row[Any]) -> Channel:
    return Channel(
        user=row.user,
        name=row.name,
        kind=ChannelKind(row.kind),
        shown=row.shown,
        events=_kinds(row.events),
        sealed=row.sealed,
        sent=row.sent,
        changed_at=row.changed_at,
        tries=row.tries,
        next_at=row.next_at,
        told_at=row.told_at,
        trouble=None if row.trouble is None else codec.message_of(row.trouble),
    )


def _notice(row: Row[Any]) -> Notice:
    return Notice(
        row.id,
        row.user,
        NoticeKind(row.kind),
        row.job,
        row.name,
        row.run,
        row.tenant,
        row.at,
        codec.message_of(row.text),
    )

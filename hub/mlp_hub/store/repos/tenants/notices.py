"""Messages to people: notices about their jobs, with the channels of these, and announcements of administrators."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from sqlalchemy import func, literal, select, update

from mlp_hub.domain.notices.announcement import Announcement
from mlp_hub.domain.notices.notice import Channel, Notice, NoticeChoice, NoticeKind
from mlp_hub.store.repos.base import Repo
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import announcement as a
from mlp_hub.store.tables import notice as n
from mlp_hub.store.tables import notice_channel as c
from mlp_hub.store.tables import notice_choice as t
from mlp_language.message import Message

_choices = Rows(NoticeChoice, t, embedded={"quiet": "quiet_"})
_channels = Rows(Channel, c)
_notices = Rows(Notice, n, columns={"uid": "job"}, numbered="id")
_announcements = Rows(Announcement, a, numbered="id")
_tested = _channels.part(("told_at", "trouble"))
_sending = _channels.part(("sent", "tries", "next_at", "told_at", "trouble"))


class Notices(Repo):
    """The notices, the channels that they go to and what else was chosen."""

    __slots__ = ()

    def choices(self) -> list[NoticeChoice]:
        """Return all that was chosen."""
        return self._list(_choices, select(t))

    def choice(self, user: str) -> NoticeChoice:
        """Return a user's choice; without one, it has no kinds of notices."""
        return self._one(_choices, select(t).where(t.c.user == user)) or NoticeChoice(user)

    def choose(self, new: NoticeChoice) -> None:
        """Store what somebody chose."""
        self._store(_choices, new)

    def channels(self, user: str | None = None) -> list[Channel]:
        """Return the channels of somebody, or of all, by name."""
        query = select(c).order_by(c.c.user, c.c.name)
        return self._list(_channels, query if user is None else query.where(c.c.user == user))

    def put_channel(self, new: Channel) -> None:
        """Store a channel, new or changed."""
        self._store(_channels, new)

    def note_sent(self, new: Channel) -> None:
        """Store how sending went, unless the channel was changed meanwhile."""
        mine = update(c).where(c.c.user == new.user, c.c.name == new.name, c.c.changed_at == new.changed_at)
        self._c.execute(mine.values(_sending(new)))

    def note_tested(self, tested: Channel, now: float, trouble: Message | None) -> None:
        """Store the result of a test, unless the channel was changed meanwhile. The state of the queue stays."""
        told_at = tested.told_at if trouble is not None else now
        mine = update(c).where(
            c.c.user == tested.user, c.c.name == tested.name, c.c.changed_at == tested.changed_at
        )
        values = _tested(replace(tested, told_at=told_at, trouble=trouble))
        self._c.execute(mine.values(values))

    def remove_channels(self, user: str, names: Collection[str]) -> None:
        """Forget channels of somebody."""
        self._delete(c, c.c.user == user, c.c.name.in_(sorted(names)))

    def add(self, notices: Iterable[Notice]) -> None:
        """Store notices; each is given its number."""
        if rows := [_notices.row(one) for one in notices]:
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
        return self._list(_notices, query)

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

    def number_since(self, user: str, kinds: Collection[NoticeKind], since: float) -> int:
        """Return how many notices of these kinds were stored for somebody since a time."""
        return self._count(n, n.c.user == user, n.c.kind.in_(sorted(kinds)), n.c.at > since)

    def delete_before(self, before: float) -> int:
        """Delete notices that are older; return their number."""
        return self._delete(n, n.c.at < before)

    def remove_all(self, user: str) -> None:
        """Forget all of somebody."""
        for table in (n, c, t):
            self._delete(table, table.c.user == user)


class Announcements(Repo):
    """The announcements."""

    __slots__ = ()

    def current(self, now: float) -> list[Announcement]:
        """Return those that are not over, the oldest first."""
        return self._list(_announcements, select(a).where(a.c.ends_at > now).order_by(a.c.id))

    def add(self, new: Announcement) -> Announcement:
        """Store a new one, and return it with its number."""
        number = self._c.execute(a.insert().values(_announcements.row(new)).returning(a.c.id)).scalar_one()
        return replace(new, id=int(number))

    def remove(self, number: int) -> bool:
        """Forget one; False where it is not there."""
        return bool(self._delete(a, a.c.id == number))

    def remove_all(self, tenant: str) -> None:
        """Forget those of a tenant."""
        self._delete(a, a.c.tenant == tenant)

    def delete_expired(self, now: float) -> int:
        """Delete those that are over; return their number."""
        return self._delete(a, a.c.ends_at <= now)

"""Worker of the queue that brings notices to people's channels, and tries again later and later.

What is left to send is what is stored after the number of the last that was sent. A death after something was sent and before that
is stored sends it once more, with the same number: nothing is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from mlp_hub.domain.notices.notice import (
    OF_ALERTS,
    OF_REQUESTS,
    TITLES,
    TITLES_OF_TEAMS,
    WITHOUT_JOB,
    AskedFor,
    Channel,
    ChannelKind,
    Notice,
    NoticeChoice,
    NoticeKind,
)
from mlp_hub.domain.text import calling_nobody
from mlp_hub.service.config import NoticePolicy
from mlp_hub.service.lifecycle.workqueue import WorkQueue
from mlp_hub.service.notices.outbox import quiet_for, zone_of
from mlp_hub.service.notices.sender import Sender
from mlp_hub.service.secrets.service import SecretService
from mlp_hub.service.state.leadership import LeaseLost
from mlp_hub.store.database import Database
from mlp_hub.store.tx import Tx
from mlp_language.message import Message, msg, msgs
from mlp_language.render import Reader, render

KIND = "notices"
MOST = 50
"""Tuning: notices that go together."""
LOST = msg("its address was encrypted with another key of the hub; set it again")


class NoticeWorker:
    """Sends what is stored for somebody, one channel after the other."""

    def __init__(
        self,
        queue: WorkQueue,
        db: Database,
        secrets: SecretService,
        sender: Sender,
        *,
        clock: Callable[[], float],
        policy: NoticePolicy,
    ) -> None:
        self._queue, self._db, self._secrets = queue, db, secrets
        self._sender, self._clock, self._policy = sender, clock, policy
        self.on_sent: list[Callable[[str, bool], None]] = []
        """Called with the kind of a channel and whether it accepted what was sent."""
        queue.serve(KIND, self._work)

    def look_at(self, user: str) -> None:
        """Have what is stored for somebody looked at soon."""
        self._queue.add((KIND, user))

    async def _work(self, user: str) -> bool:
        try:
            choice, channels, language = await self._db.read(
                lambda tx: (tx.notices.choice(user), tx.notices.channels(user), _language(tx, user))
            )
            # side by side: one that hangs holds up none of the others
            waits = await asyncio.gather(*(self._tend(choice, one, language) for one in channels))
        except LeaseLost:
            return False
        soon = [wait for wait in waits if wait is not None]
        if soon:
            self._queue.add_after((KIND, user), min(soon))
        return False

    async def _tend(self, choice: NoticeChoice, channel: Channel, language: str) -> float | None:
        """Send the notices of a channel; return the seconds until the next look, or None."""
        found = await self._db.read(
            lambda tx: tx.notices.after(channel.user, channel.sent, MOST, channel.events)
        )
        if not found:
            return None
        zone = await zone_of(choice.zone)
        now = self._clock()
        wait = max(channel.next_at - now, quiet_for(choice.quiet, zone, now))
        if wait > 0:
            return wait
        trouble = await self.send(channel, found, Reader(language or "en", zone))
        for listener in self.on_sent:
            listener(channel.kind.value, trouble is None)
        now, p = self._clock(), self._policy
        if trouble is None:
            new = replace(
                channel, sent=found[-1].id, tries=0, next_at=now + p.together_s, told_at=now, trouble=None
            )
        else:
            again = min(p.retry_s * 2 ** min(channel.tries, 20), p.retry_max_s)
            over = now - found[0].at > p.give_up_s
            new = replace(
                channel,
                sent=found[-1].id if over else channel.sent,
                tries=channel.tries + 1,
                next_at=now + again,
                trouble=trouble,
            )
        await self._db.write(lambda tx: tx.notices.note_sent(new))
        return new.next_at - now

    async def send(self, channel: Channel, notices: Sequence[Notice], reader: Reader) -> Message | None:
        """Send notices together; return why they were not taken."""
        address = self._secrets.unsealed(channel.sealed, channel.bound)
        if address is None:
            return LOST
        title, body = _words(notices, self._policy.pages, reader, channel.kind)
        data = {
            "title": title,
            "notices": [_data(one, self._policy.pages, reader) for one in notices],
        }
        return await self._sender.send(channel.kind.value, address.decode(), title, body, data)


def _language(tx: Tx, user: str) -> str:
    found = tx.users.get(user)
    return "" if found is None else found.language


def title_of(notice: Notice) -> Message:
    """Return the headline of a notice."""
    known = TITLES[notice.kind]
    if notice.kind in OF_ALERTS:
        if not notice.tenant:
            return Message(known.template, {"alert": notice.name})
        known = TITLES_OF_TEAMS[notice.kind]
        return Message(known.template, {"alert": notice.name, "tenant": notice.tenant})
    if notice.kind is NoticeKind.BUDGET:
        said = notice.text.args  # a notice that an older release stored has the reached level instead
        percent = said.get("percent", said.get("n", ""))
        return Message(known.template, {"tenant": notice.tenant, "percent": percent})
    return Message(
        known.template, {"tenant": notice.tenant} if notice.kind in OF_REQUESTS else {"job": notice.job}
    )


def _link(notice: Notice, pages: str) -> str:
    if not pages or not notice.id:
        return ""
    if notice.kind in OF_ALERTS:
        return f"{pages}tenants/{notice.tenant}/alerts" if notice.tenant else f"{pages}admin/alerts"
    if notice.kind in OF_REQUESTS:
        where = _PAGES_OF_REQUESTS[notice.kind, AskedFor(notice.name)]
        return f"{pages}{where}".replace("TEAM", notice.tenant)
    return f"{pages}jobs/{notice.user}/{notice.name}@{notice.run}"


_PAGES_OF_REQUESTS = {
    (NoticeKind.ASKED, AskedFor.PLACE): "tenants/TEAM",
    (NoticeKind.ASKED, AskedFor.QUOTA): "admin/requests",
    (NoticeKind.ANSWERED, AskedFor.PLACE): "me",
    (NoticeKind.BUDGET, AskedFor.BUDGET): "tenants/TEAM",
    (NoticeKind.ANSWERED, AskedFor.QUOTA): "tenants/TEAM",
    (NoticeKind.IDLE, AskedFor.SERVER): "me",
    (NoticeKind.IDLE_TEAM, AskedFor.IDLE): "tenants/TEAM",
}
"""Pages that follow a notice of a request, below the panel."""


def _words(notices: Sequence[Notice], pages: str, reader: Reader, kind: ChannelKind) -> tuple[str, str]:
    def said(message: Message) -> str:
        # others' words are in it: who asks for a place in a team calls nobody in its chat
        text = render(message, reader)
        return calling_nobody(text) if kind is ChannelKind.SERVICE else text

    lines = []
    for one in notices:
        link = _link(one, pages)
        about = [said(title_of(one)), said(one.text), *([link] if link else [])]
        lines.append("\n".join(about))
    if len(notices) == 1:
        return lines[0].split("\n")[0], "\n\n".join(lines) + "\n"
    title = msgs("{n} notice of MLP Hub", "{n} notices of MLP Hub", n=len(notices))
    return render(title, reader), "\n\n".join(lines) + "\n"


def _data(one: Notice, pages: str, reader: Reader) -> dict[str, Any]:
    return {
        "id": one.id,
        "event": one.kind.value if one.id else "test",
        "user": one.user,
        "job": "" if one.kind in WITHOUT_JOB else one.name,
        "run": one.run,
        "tenant": one.tenant,
        "at": one.at,
        "title": render(title_of(one), reader),
        "text": render(one.text, reader),
        "link": _link(one, pages),
    }

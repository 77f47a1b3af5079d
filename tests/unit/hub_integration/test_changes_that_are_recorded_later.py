"""Changes of rights that the audit log could not take come into it later, in order, each once, whenever the hub is killed."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub import orm
from sqlalchemy import text

from mlp_hub.hub_integration.accounts import outbox, recording
from mlp_hub.hub_integration.accounts.outbox import OutboxDelivery, OutboxEntry, news
from mlp_hub.hub_integration.accounts.refusal import AccountRefused
from mlp_hub.hub_integration.providers.records import ended_logins
from mlp_spawner.errors import ServiceRefused, ServiceUnreachable


class Killed(BaseException):
    """Stands for SIGKILL: nothing after it runs, and no transaction in progress commits."""


class Service:
    """Records what it is told, each key once, as the platform's service does."""

    def __init__(self) -> None:
        self.recorded: list[tuple[str, str, dict[str, Any]]] = []
        self.calls = 0
        self.before: Callable[[str], None] = lambda _user: None
        self.after: Callable[[], None] = lambda: None
        self._keys: set[str] = set()

    async def _record(self, kind: str, user: str, fields: dict[str, Any]) -> None:
        self.calls += 1
        await asyncio.sleep(0)
        self.before(user)
        once = fields.pop("once")
        if once not in self._keys:
            self._keys.add(once)
            self.recorded.append((kind, user, fields))
        self.after()

    async def token_ended(self, user: str, **fields: object) -> None:
        await self._record("token", user, fields)

    async def changing(self, user: str, **fields: object) -> None:
        await self._record("account", user, fields)

    async def report_identity(self, user: str, **fields: object) -> None:
        await self._record("standing", user, fields)

    def users(self) -> list[str]:
        return [user for _, user, _ in self.recorded]


class Hub:
    """The hub's database and its delivery; `restarted` leaves what a kill leaves."""

    def __init__(self, file: Path, service: Service) -> None:
        self._file, self.service = file, service
        self.db: Any = None
        self.restarted()

    def restarted(self) -> None:
        if self.db is not None:
            self.db.close()
            self.db.bind.dispose()
        self.db = orm.new_session_factory(f"sqlite:///{self._file}")()
        outbox.open_table(self.db)
        self.delivery = OutboxDelivery()
        self.delivery.install(self.service, retry_s=0.001)

    def keep(self, *users: str) -> None:
        for user in users:
            self.db.add(outbox._entry(news("token_ended", user, actor="admin"), time.time()))
        self.db.commit()

    def kept(self) -> list[str]:
        return [row.user for row in self.db.query(OutboxEntry).order_by(OutboxEntry.id)]

    async def delivered(self) -> None:
        self.delivery.begin(self.db)
        assert self.delivery._task is not None
        await self.delivery._task


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    made = Hub(tmp_path / "hub.sqlite", Service())
    yield made
    made.db.close()


async def test_an_entry_that_is_refused_for_long_holds_up_no_other(hub: Hub) -> None:
    hub.keep("ann", "odd", "bob", "odd", "eve")
    away, refusals = 2, 6

    def answer(user: str) -> None:
        nonlocal away, refusals
        if away:
            away -= 1
            raise ServiceUnreachable("http://hub", "nobody listens")
        if user == "odd" and refusals:
            refusals -= 1
            raise ServiceRefused("the name is odd", "Invalid")

    hub.service.before = answer
    await hub.delivered()
    assert hub.service.users() == ["ann", "bob", "eve", "odd", "odd"]
    assert hub.kept() == []
    hub.keep("zoe")
    await hub.delivered()
    assert (hub.service.users()[-1], hub.kept()) == ("zoe", [])


async def test_entries_of_another_version_and_torn_ones_hold_up_no_other(hub: Hub) -> None:
    hub.db.add(OutboxEntry(kind="of-tomorrow", user="ann", fields="{}"))
    for torn in ("{", "[]", "7", '{"once": 7'):
        hub.db.add(OutboxEntry(kind="token_ended", user="bob", fields=torn))
    hub.keep("eve")
    hub.delivery.begin(hub.db)
    assert await hub.delivery.catch_up(hub.db), "who is given a right does not wait for these"
    assert (hub.service.users(), hub.kept()) == (["eve"], ["ann", *["bob"] * 4])
    hub.db.query(OutboxEntry).delete()
    await hub.delivered()


async def test_an_entry_that_is_refused_again_and_again_is_named_once(
    hub: Hub, caplog: pytest.LogCaptureFixture
) -> None:
    hub.keep("odd", "ann")
    refusals = 8

    def answer(user: str) -> None:
        nonlocal refusals
        if user == "odd" and refusals:
            refusals -= 1
            raise ServiceRefused("the name is odd", "Invalid")

    hub.service.before = answer
    await hub.delivered()
    assert hub.service.users() == ["ann", "odd"]
    assert [record.getMessage() for record in caplog.records] == [
        "token_ended of odd is not in the audit log yet: Invalid: the name is odd"
    ]


def test_a_trouble_that_lasts_is_named_again_after_an_hour(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    trouble = outbox.LastTrouble(lambda: now)
    for now in (0.0, 30.0, 3599.0, 3600.0, 3630.0):  # noqa: B007 - the clock of the trouble
        trouble.warn(1, "entry %s: %s", 1, "refused")
    assert len(caplog.records) == 2
    trouble.warn(1, "entry %s: %s", 1, "refused for another reason")
    trouble.warn(2, "entry %s: %s", 2, "refused")
    assert len(caplog.records) == 4


STEPS = ("before the change is stored", "before the delivery", "before the record", "after the record", "")


@pytest.mark.parametrize("step", STEPS)
async def test_a_change_has_its_entry_once_wherever_the_hub_is_killed(hub: Hub, step: str) -> None:
    """The change is an admin right that is taken away; it is in the log once, exactly if it was made."""
    hub.db.add(orm.User(name="ann", admin=True))
    hub.db.commit()

    def kill_at(here: str) -> None:
        if step == here:
            raise Killed

    async def removal() -> None:
        told = news("account", "ann", action="user.admin", admin=False)
        hub.service.before = lambda _user: _away()
        assert not await hub.delivery.tell(hub.db, told)
        hub.service.before = lambda _user: kill_at("before the record")
        hub.service.after = lambda: kill_at("after the record")
        hub.db.add(outbox._entry(told, time.time()))
        orm.User.find(hub.db, "ann").admin = False
        kill_at("before the change is stored")
        hub.db.commit()
        kill_at("before the delivery")
        await outbox._round(hub.db, hub.service, outbox.LastTrouble())

    await _until_killed(removal(), killed=bool(step))
    hub.restarted()
    hub.service.before, hub.service.after = lambda _user: None, lambda: None
    await hub.delivered()
    made = not orm.User.find(hub.db, "ann").admin
    assert made is (step != "before the change is stored")
    entry = ("account", "ann", {"action": "user.admin", "admin": False})
    assert hub.service.recorded == ([entry] if made else [])
    assert hub.kept() == []


async def _until_killed(work: Awaitable[None], *, killed: bool) -> None:
    if not killed:
        await work
        return
    with pytest.raises(Killed):
        await work


def _away() -> None:
    raise ServiceUnreachable("http://hub", "nobody listens")


async def test_a_change_that_was_recorded_without_an_answer_is_recorded_once(hub: Hub) -> None:
    told = news("token_ended", "ann", actor="ann")
    hub.service.after = _away
    assert not await hub.delivery.tell(hub.db, told)
    hub.service.after = lambda: None
    hub.db.add(outbox._entry(told, time.time()))
    hub.db.commit()
    await hub.delivered()
    assert (hub.service.calls, hub.service.users()) == (2, ["ann"])


async def test_nothing_is_recorded_before_what_happened_earlier(hub: Hub) -> None:
    hub.keep("ann")
    assert not await hub.delivery.tell(hub.db, news("token_ended", "bob", actor="bob")), (
        "it goes behind ann's"
    )
    assert hub.service.calls == 0
    await hub.delivery.catch_up(hub.db)
    assert hub.service.users() == ["ann"]
    assert await hub.delivery.tell(hub.db, news("token_ended", "bob", actor="bob"))
    assert hub.service.users() == ["ann", "bob"]


async def test_the_next_record_waits_for_a_round_that_begins_after_it(hub: Hub) -> None:
    """The round in progress may have found the service away, which is back by now."""
    hub.delivery.install(hub.service, retry_s=outbox.RETRY_MOST_S)
    hub.keep("ann")
    next_waits: list[asyncio.Task[None]] = []
    begun = asyncio.Event()

    def refuse_once(_user: str) -> None:
        if not next_waits:
            next_waits.append(asyncio.ensure_future(hub.delivery.catch_up(hub.db)))
            begun.set()
            raise ServiceRefused("not now", "Unavailable")

    hub.service.before = refuse_once
    hub.delivery.begin(hub.db)
    await begun.wait()
    await next_waits[0]
    assert (hub.service.users(), hub.kept()) == (["ann"], [])


async def test_a_service_that_is_back_gets_the_rest_with_the_next_change(hub: Hub) -> None:
    """Not after the wait for the next try, which grows to half a minute."""
    hub.delivery.install(hub.service, retry_s=outbox.RETRY_MOST_S)
    hub.service.before = lambda _user: _away()
    hub.keep("ann")
    await hub.delivery.catch_up(hub.db)
    assert hub.kept() == ["ann"]
    hub.service.before = lambda _user: None
    hub.keep("bob")
    await hub.delivered()
    assert hub.service.users() == ["ann", "bob"]


async def test_a_late_entry_has_the_time_of_its_change(hub: Hub) -> None:
    hub.keep("ann")
    hub.keep("bob")
    began = time.time() - outbox.LATE_S - 1
    hub.db.query(OutboxEntry).filter(OutboxEntry.user == "ann").update({"at": began})
    hub.db.commit()
    await hub.delivered()
    assert [fields.get("at") for _, _, fields in hub.service.recorded] == [began, None]


async def test_an_account_that_came_back_meanwhile_keeps_its_places(hub: Hub) -> None:
    """A report of `disabled` takes the places of a person's groups away, and waiting jobs."""
    for name in ("ann", "bob"):
        ended_logins.note(hub.db, name, "disabled")
        hub.db.add(outbox._entry(news("login_ended", name, tokens=2), None))
    hub.db.commit()
    ended_logins.clear(hub.db, "bob")
    hub.db.commit()
    await hub.delivered()
    assert [(user, fields["ended"]) for _, user, fields in hub.service.recorded] == [
        ("ann", "disabled"),
        ("bob", "session"),
    ]


async def test_entries_of_the_two_tables_of_earlier_versions_survive_the_upgrade(hub: Hub) -> None:
    db = hub.db
    db.execute(
        text(
            "CREATE TABLE mlp_unrecorded_ends (id INTEGER PRIMARY KEY AUTOINCREMENT,"
            ' "user" VARCHAR(255) NOT NULL, fields TEXT NOT NULL)'
        )
    )
    db.execute(
        text("CREATE TABLE mlp_unreported (name VARCHAR(128) PRIMARY KEY, admin BOOLEAN, tokens INTEGER)")
    )
    for user in ("ann", "bob"):
        fields = json.dumps({"actor": "root", "note": "", "token": f"a-{user}"})
        db.execute(
            text('INSERT INTO mlp_unrecorded_ends ("user", fields) VALUES (:u, :f)'), {"u": user, "f": fields}
        )
    for row in (("eve", 1, None), ("joe", None, 3), ("kim", 0, 0)):
        db.execute(
            text("INSERT INTO mlp_unreported VALUES (:n, :a, :t)"),
            dict(zip("nat", row, strict=True)),
        )
    db.commit()
    for _ in range(3):  # a start that is repeated moves nothing twice
        hub.restarted()
    await hub.delivered()
    assert hub.service.recorded == [
        ("token", "ann", {"actor": "root", "note": "", "token": "a-ann"}),
        ("token", "bob", {"actor": "root", "note": "", "token": "a-bob"}),
        ("standing", "eve", {"ended": "session", "admin": True}),
        ("standing", "joe", {"ended": "session", "tokens": 3}),
        ("standing", "kim", {"ended": "session", "tokens": 0}),
        ("standing", "kim", {"ended": "session", "admin": False}),
    ]
    assert hub.kept() == []


async def test_an_upgrade_that_is_killed_loses_no_entry(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.db.execute(
        text('CREATE TABLE mlp_unrecorded_ends (id INTEGER PRIMARY KEY, "user" VARCHAR, fields TEXT)')
    )
    hub.db.execute(text("INSERT INTO mlp_unrecorded_ends VALUES (1, 'ann', '{}')"))
    hub.db.commit()
    with monkeypatch.context() as patch:
        patch.setattr(outbox, "_entry", lambda *_: (_ for _ in ()).throw(Killed()))
        with pytest.raises(Killed):
            hub.restarted()
    hub.restarted()
    await hub.delivered()
    assert hub.service.users() == ["ann"]


async def test_a_database_that_fails_for_a_while_ends_no_delivery(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.keep("ann", "bob")
    look, failures = outbox._next, [1, 2]

    def failing(db: Any, after: int) -> Any:
        if failures:
            failures.pop()
            db.execute(text("SELECT * FROM no_table"))
        return look(db, after)

    monkeypatch.setattr(outbox, "_next", failing)
    await hub.delivered()
    assert (hub.service.users(), hub.kept()) == (["ann", "bob"], [])


class Handler:
    """A request of an administrator at the hub itself."""

    def __init__(self, db: Any) -> None:
        self.db, self.log = db, logging.getLogger(__name__)
        self.current_user = SimpleNamespace(kind="user", name="root")


@pytest.mark.parametrize("away", ["it does not answer", "nobody listens"])
async def test_attack_a_right_that_is_given_again_is_not_recorded_before_its_removal(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, away: str
) -> None:
    """The service comes back in the moment in which the right is given again."""
    monkeypatch.setattr(outbox, "PATIENCE_S", 0.05)
    monkeypatch.setattr(recording, "DELIVERY", hub.delivery)
    monkeypatch.setattr(recording, "_service", [hub.service])
    hub.keep("ann")

    class Away:
        async def token_ended(self, user: str, **fields: object) -> None:
            if away == "nobody listens":
                _away()
            await asyncio.sleep(60)

    hub.delivery.install(Away(), retry_s=60)  # type: ignore[arg-type]
    with pytest.raises(AccountRefused, match="nothing was changed"):
        await recording.record(Handler(hub.db), "ann", "user.approve")
    assert (hub.service.users(), hub.kept()) == ([], ["ann"])
    hub.delivery._task.cancel()  # type: ignore[union-attr]
    hub.delivery.install(hub.service, retry_s=0.001)
    await asyncio.sleep(0)
    hub.service.before = lambda _user: None
    assert await hub.delivery.catch_up(hub.db)
    assert hub.service.users() == ["ann"]

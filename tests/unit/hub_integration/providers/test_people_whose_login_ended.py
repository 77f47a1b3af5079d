"""Whose login at the provider ended is let in for a while by tokens, then no more; servers that could not be ended are ended later."""

from __future__ import annotations

import asyncio
import json
import secrets
import tomllib
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub import orm
from jupyterhub.crypto import CryptKeeper
from sqlalchemy import event, text
from sqlalchemy.exc import (
    DataError,
    IntegrityError,
    InvalidRequestError,
    OperationalError,
    PendingRollbackError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from mlp_hub.hub_integration.accounts import logins, outbox
from mlp_hub.hub_integration.providers.protocols.provider import NotStoredError, ProviderIdentity
from mlp_hub.hub_integration.providers.records import ended_logins, identities, provider_sessions
from mlp_hub.hub_integration.providers.sync.people import HubPeople

DAY_S = 86_400.0
SERVER = ""


class Account:
    """A user as JupyterHub hands one out, with one server that can be stopped or not."""

    def __init__(self, record: orm.User, hub: Hub) -> None:
        self.orm_user, self.name, self._hub = record, record.name, hub
        self.admin = False
        self.spawners = {SERVER: SimpleNamespace(active=True, pending=None, ready=False)}

    async def get_auth_state(self) -> dict[str, Any] | None:
        return self._hub.states.get(self.name)

    async def save_auth_state(self, state: dict[str, Any] | None) -> None:
        self._hub.states[self.name] = state

    def sync_groups(self, groups: list[str]) -> None:
        self._hub.groups[self.name] = groups

    async def stop(self, server: str) -> None:
        self._hub.stops.append(self.name)
        await self._hub.gate.wait()
        if self._hub.stuck:
            raise TimeoutError("it does not end")
        self.spawners[server].active = False
        record = self._hub.db.query(orm.Spawner).filter(orm.Spawner.user_id == self.orm_user.id).one()
        record.server = None
        self._hub.db.commit()


class Hub:
    """A hub's database, and the users in it."""

    def __init__(self) -> None:
        self.db = orm.new_session_factory("sqlite:///:memory:")()
        self.states: dict[str, Any] = {}
        self.groups: dict[str, list[str]] = {}
        self.stops: list[str] = []
        self.stuck = False
        self.gate = asyncio.Event()
        self.gate.set()
        self.users: dict[orm.User, Account] = {}
        identities.ensure_table(self.db)

    def add(self, name: str, *, server: bool = False) -> None:
        user = orm.User(name=name)
        self.db.add(user)
        identities.claim(
            self.db, ProviderIdentity("i", f"s-{name}", name, "", False, (), False), lambda _: False
        )
        if server:
            self.db.add(orm.Spawner(name=SERVER, user=user, server=orm.Server()))
        self.db.commit()
        self.users[user] = Account(user, self)
        self.states[name] = {"session": f"sid-{name}"}

    def people(self, unseen_s: float = DAY_S) -> HubPeople:
        return HubPeople(self, decides_admins=False, unseen_s=unseen_s)


@pytest.fixture
def hub() -> Iterator[Hub]:
    made = Hub()
    yield made
    made.db.close()


def age(hub: Hub, name: str, seconds: float) -> None:
    known = hub.db.get(ended_logins.LoginEnd, name)
    known.at -= timedelta(seconds=seconds)
    hub.db.commit()


async def settled() -> None:
    """Let all go on that can."""
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait([task])


async def test_tokens_of_whose_login_ended_are_taken_for_the_time_that_is_set_and_no_longer(hub: Hub) -> None:
    hub.add("ann")
    people = hub.people()
    await people.end("ann", "session")
    assert people.may_go_on("ann")
    age(hub, "ann", DAY_S - 60)
    await people.end("ann", "session")  # said again: the time goes on
    assert people.may_go_on("ann")
    age(hub, "ann", 61)
    assert not people.may_go_on("ann")
    assert not hub.people().may_go_on("ann"), "after a restart too"
    identity = ProviderIdentity("i", "s-ann", "ann", "", False, (), False)
    await people.keep("ann", identity, [], {})
    assert people.may_go_on("ann")


@pytest.mark.parametrize("why", ["session", "disabled"])
async def test_a_login_without_a_browser_restores_access_and_creates_no_browser_login(
    hub: Hub, why: Any
) -> None:
    hub.add("ann")
    people = hub.people(unseen_s=0)
    await people.end("ann", why)
    people.note_identity("ann", ProviderIdentity("i", "s-ann", "ann", "", False, (), False), ["/ml/red"])
    assert not ended_logins.has(hub.db, "ann")
    assert hub.groups["ann"] == ["/ml/red"]
    assert hub.states["ann"] is None
    people.note_identity("nobody", ProviderIdentity("i", "s-no", "no", "", False, (), False), [])


@pytest.mark.parametrize("lost", [False, True])
async def test_with_no_time_at_all_they_end_with_the_login_and_one_that_was_lost_ends_too(
    hub: Hub, lost: bool
) -> None:
    hub.add("ann")
    people = hub.people(unseen_s=0)
    if not lost:  # else what was kept of it can be read no more, and nothing was noted
        await people.end("ann", "session")
    assert not people.may_go_on("ann")


def test_the_loss_of_a_stored_login_starts_the_grace_period(hub: Hub) -> None:
    hub.add("ann")
    people = hub.people()
    assert people.may_go_on("ann")
    age(hub, "ann", DAY_S + 1)
    assert not people.may_go_on("ann")


async def test_a_server_that_could_not_be_ended_is_ended_at_a_later_turn_and_once_at_a_time(hub: Hub) -> None:
    hub.add("ann", server=True)
    hub.add("bob", server=True)
    people = hub.people()
    hub.stuck = True
    await people.end("ann", "disabled")
    await settled()
    assert hub.stops == ["ann"]
    hub.gate.clear()
    people.end_servers_left()
    people.end_servers_left()  # while it is ending
    hub.stuck = False
    hub.gate.set()
    await settled()
    assert hub.stops == ["ann", "ann"]
    people.end_servers_left()
    await settled()
    assert hub.stops == ["ann", "ann"], "it has ended; and bob's runs on"
    assert people.busy() == {"bob"}


async def test_a_hub_that_died_meanwhile_ends_them_when_it_is_back(hub: Hub) -> None:
    hub.add("ann", server=True)
    ended_logins.note(hub.db, "ann", "disabled")  # it died before anything else
    hub.db.commit()
    hub.people().end_servers_left()
    await settled()
    assert hub.stops == ["ann"]


async def test_servers_of_a_user_whose_login_ended_continue_for_the_same_grace_period(hub: Hub) -> None:
    hub.add("ann", server=True)
    people = hub.people()
    await people.end("ann", "session")
    people.end_servers_left()
    await settled()
    assert hub.stops == []
    age(hub, "ann", DAY_S + 1)
    people.end_servers_left()
    await settled()
    assert hub.stops == ["ann"]


async def test_a_disabled_account_stays_disabled_whatever_happens_to_its_session(hub: Hub) -> None:
    hub.add("ann")
    people = hub.people()
    await people.end("ann", "session")
    await people.end("ann", "disabled")
    await people.end("ann", "session")
    assert people.disabled() == {"ann"}
    assert not people.may_go_on("ann")


@pytest.mark.usefixtures("key")
async def test_a_provider_session_is_matched_to_its_user_only_by_its_name(hub: Hub) -> None:
    hub.add("ann")
    hub.add("bob")
    people = hub.people()
    for name, session in (("ann", "one"), ("bob", "two"), ("ann", "three"), ("bob", "")):
        identity = ProviderIdentity("i", f"s-{name}", name, "", False, (), False)
        await people.keep(name, identity, [], {"session": session})
    found = {session: provider_sessions.names_of(hub.db, session) for session in ("one", "two", "three", "")}
    assert found == {"one": [], "two": [], "three": ["ann"], "": []}


def in_browsers(hub: Hub, name: str, *sessions: str) -> orm.User:
    """Log somebody in with a browser each."""
    user = orm.User.find(hub.db, name)
    for number, session in enumerate(sessions):
        held = logins.begin(hub.db, user.id)
        browser = f"browser-{name}-{number}"
        hub.db.add(orm.APIToken(user=user, token=secrets.token_hex(8), session_id=browser))
        provider_sessions.note_browser(
            hub.db, user.id, login=logins.digest(held), session=session, hub_session=browser
        )
    return user


def test_the_end_of_one_session_ends_the_browser_that_logged_in_by_it_and_no_other(hub: Hub) -> None:
    hub.add("ann")
    hub.add("bob")
    hub.people()
    ann, bob = in_browsers(hub, "ann", "one", "two", "three"), in_browsers(hub, "bob", "four")
    assert [provider_sessions.names_of(hub.db, session) for session in ("two", "four", "none")] == [
        ["ann"],
        ["bob"],
        [],
    ]
    assert provider_sessions.end_browsers(hub.db, bob, "two") == 0, "it is another's"
    assert provider_sessions.end_browsers(hub.db, ann, "two") == 1
    assert provider_sessions.end_browsers(hub.db, ann, "two") == 0
    left = {token.session_id for token in hub.db.query(orm.APIToken)}
    assert left == {"browser-ann-0", "browser-ann-2", "browser-bob-0"}
    assert hub.db.query(logins.Login).count() == 3


def test_the_number_of_browsers_per_user_is_limited_and_the_oldest_is_forgotten_first(hub: Hub) -> None:
    hub.add("ann")
    hub.add("bob")
    hub.people()
    bob = in_browsers(hub, "bob", "bobs")
    in_browsers(hub, "ann", *(f"s-{n}" for n in range(provider_sessions.BROWSERS_MAX + 2)))
    known = [
        bool(provider_sessions.names_of(hub.db, f"s-{n}")) for n in range(provider_sessions.BROWSERS_MAX + 2)
    ]
    assert known == [False, False] + [True] * provider_sessions.BROWSERS_MAX
    assert provider_sessions.end_browsers(hub.db, bob, "bobs") == 1


def login_by(session: str, **more: str) -> dict[str, str]:
    """What the provider gives at a login."""
    return {"issuer": "i", "subject": "ann's", "session": session, "access_token": f"a-{session}", **more}


async def keep_all(hub: Hub, user: orm.User, *states: dict[str, str]) -> list[str]:
    """Keep what the provider gave to each browser, and return their logins."""
    mine = hub.db.query(provider_sessions.ProviderBrowser).filter(
        provider_sessions.ProviderBrowser.user_id == user.id
    )
    held = [row.login for row in mine.order_by(provider_sessions.ProviderBrowser.begun)]
    for login, state in zip(held, states, strict=True):
        await provider_sessions.keep_login(hub.db, user.id, login, state)
    return held


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CryptKeeper.instance(), "keys", [b"k" * 32])


@pytest.mark.usefixtures("key")
async def test_each_browser_keeps_what_the_provider_gave_at_its_own_login_encrypted(hub: Hub) -> None:
    hub.add("ann")
    hub.people()
    ann = in_browsers(hub, "ann", "one", "")
    held = await keep_all(hub, ann, login_by("one", id_token="first"), login_by("", id_token="second"))
    await provider_sessions.keep_login(hub.db, ann.id, "nobody's", login_by("one"))
    found = [
        (await provider_sessions.login_of(hub.db, login)).get("id_token") for login in (*held, "nobody's", "")
    ]
    assert found == ["first", "second", None, None]
    assert not any(b"first" in row.token for row in hub.db.query(provider_sessions.ProviderLogin))
    provider_sessions.forget_browsers(hub.db, login=held[1])
    assert provider_sessions.end_browsers(hub.db, ann, "one") == 1
    assert hub.db.query(provider_sessions.ProviderLogin).count() == 0


@pytest.mark.usefixtures("key")
async def test_after_a_logout_in_the_newest_browser_an_older_one_stays_and_refreshes_the_user(
    hub: Hub,
) -> None:
    hub.add("ann")
    people = hub.people()
    ann = in_browsers(hub, "ann", "one", "two")
    await keep_all(hub, ann, login_by("one", groups="before"), login_by("two"))
    hub.states["ann"] = login_by("two", groups="now")
    assert await people.go_on_by_another("ann", hub.states["ann"]) == login_by(
        "one", groups="now", refresh_token="", id_token=""
    )
    assert hub.states["ann"]["session"] == "one"
    assert {row.session for row in hub.db.query(provider_sessions.ProviderBrowser)} == {"one"}
    assert await people.go_on_by_another("ann", hub.states["ann"]) is None, "that was the last"


@pytest.mark.usefixtures("key")
async def test_a_session_that_ended_ends_its_browsers_though_the_person_logged_in_by_another_meanwhile(
    hub: Hub,
) -> None:
    hub.add("ann")
    people = hub.people()
    in_browsers(hub, "ann", "one", "two")
    hub.states["ann"] = login_by("two")
    assert await people.go_on_by_another("ann", login_by("one")) == login_by("two")
    assert {row.session for row in hub.db.query(provider_sessions.ProviderBrowser)} == {"two"}
    assert {token.session_id for token in hub.db.query(orm.APIToken)} == {"browser-ann-1"}


@pytest.mark.usefixtures("key")
async def test_nobody_is_asked_about_by_a_browser_that_is_logged_out_here(hub: Hub) -> None:
    hub.add("ann")
    people = hub.people()
    ann = in_browsers(hub, "ann", "one")
    await keep_all(hub, ann, login_by("one"))
    logins.end_all(hub.db, ann.id)
    hub.db.commit()
    hub.states["ann"] = login_by("two")
    assert await people.go_on_by_another("ann", hub.states["ann"]) is None


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize("renewed", ["one", "two"])
async def test_tokens_of_a_browser_that_is_logged_out_here_are_forgotten_with_the_next_that_come(
    hub: Hub, renewed: str
) -> None:
    hub.add("ann")
    people = hub.people()
    ann = in_browsers(hub, "ann", "one")
    await keep_all(hub, ann, login_by("one"))
    logins.end_all(hub.db, ann.id)
    hub.db.commit()
    await people.keep(
        "ann", ProviderIdentity("i", "ann's", "ann", "", False, (), False), [], login_by(renewed)
    )
    assert hub.db.query(provider_sessions.ProviderLogin).count() == 0


@pytest.mark.usefixtures("key")
async def test_tokens_of_another_provider_or_person_are_not_shown_to_this_one(hub: Hub) -> None:
    hub.add("ann")
    people = hub.people()
    ann = in_browsers(hub, "ann", "one", "two")
    await keep_all(hub, ann, login_by("one", issuer="another"), login_by("two"))
    hub.states["ann"] = login_by("two")
    assert await people.go_on_by_another("ann", hub.states["ann"]) is None


@pytest.mark.usefixtures("key")
async def test_renewed_tokens_are_kept_for_the_browsers_of_their_session_and_all_go_with_the_account(
    hub: Hub,
) -> None:
    hub.add("ann", server=True)
    people = hub.people()
    ann = in_browsers(hub, "ann", "one", "two")
    held = await keep_all(hub, ann, login_by("one"), login_by("two"))
    identity = ProviderIdentity("i", "ann's", "ann", "", False, (), False)
    await people.keep("ann", identity, [], login_by("two", refresh_token="renewed"))
    found = [(await provider_sessions.login_of(hub.db, login)).get("refresh_token") for login in held]
    assert found == [None, "renewed"]
    await people.end("ann", "disabled")
    assert hub.db.query(provider_sessions.ProviderLogin).count() == 0
    assert hub.db.query(provider_sessions.ProviderBrowser).count() == 0


@pytest.mark.usefixtures("key")
async def test_a_login_that_the_database_does_not_take_says_so_and_is_whole_at_the_next_try(hub: Hub) -> None:
    hub.add("ann")
    people = hub.people()
    ann = in_browsers(hub, "ann", "one")
    held = await keep_all(hub, ann, login_by("one"))
    identity, renewed = (
        ProviderIdentity("i", "s-ann", "ann", "", False, (), False),
        login_by("one", id_token="new"),
    )
    hub.db.execute(text("PRAGMA query_only=ON"))
    with pytest.raises(NotStoredError, match="readonly"):
        await people.keep("ann", identity, ["/ml/red"], renewed)
    assert hub.groups == {}
    assert await provider_sessions.login_of(hub.db, held[0]) == login_by("one"), "what reads goes on"
    hub.db.execute(text("PRAGMA query_only=OFF"))
    await people.keep("ann", identity, ["/ml/red"], renewed)
    assert hub.groups == {"ann": ["/ml/red"]}
    assert await provider_sessions.login_of(hub.db, held[0]) == renewed


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (OperationalError("UPDATE", {}, Exception("the disk is full")), True),
        (IntegrityError("INSERT", {}, Exception("another hub was first")), True),
        (PendingRollbackError("of another request"), True),
        (PoolTimeoutError("no connection"), True),
        (DataError("UPDATE", {}, Exception("too long")), False),
        (InvalidRequestError("of the code"), False),
        (ValueError("the key does not fit"), False),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_only_failures_that_can_pass_are_worth_another_try(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, error: Exception, passes: bool
) -> None:
    hub.add("ann")
    people = hub.people()

    async def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(provider_sessions, "renew_logins", fail)
    identity = ProviderIdentity("i", "s-ann", "ann", "", False, (), False)
    with pytest.raises(NotStoredError if passes else type(error)):
        await people.keep("ann", identity, [], login_by("one"))
    assert hub.db.query(provider_sessions.ProviderSession).count() == 0, "what is half done is rolled back"


@pytest.mark.usefixtures("key")
async def test_renewed_tokens_cost_a_few_statements_and_logins_that_ended_none_more(hub: Hub) -> None:
    hub.add("ann")
    hub.people()
    ann = in_browsers(hub, "ann", "one", "two", "two")
    held = await keep_all(hub, ann, *map(login_by, ("one", "two", "two")))
    counts = []
    for ended in (None, held[0], held[1]):
        if ended is not None:
            hub.db.query(logins.Login).filter_by(digest=ended).delete()
            hub.db.commit()
        statements: list[str] = []
        note = partial(_note, statements)
        event.listen(hub.db.bind, "before_cursor_execute", note)
        await provider_sessions.renew_logins(hub.db, ann.id, login_by("two"))
        event.remove(hub.db.bind, "before_cursor_execute", note)
        counts.append(len(statements))
    most = tomllib.loads((Path(__file__).parents[3] / "budgets.toml").read_text())["renewed_login"]["most"]
    assert counts[0] <= most, statements
    assert sorted(counts, reverse=True) == counts
    assert [row.login for row in hub.db.query(provider_sessions.ProviderLogin)] == held[2:]


def _note(found: list[str], _connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
    found.append(statement)


async def test_an_account_that_is_taken_away_is_news_once_with_its_tokens(hub: Hub) -> None:
    hub.add("ann", server=True)
    people = hub.people()
    in_browsers(hub, "ann", "one", "two")
    await people.end("ann", "disabled")
    await people.end("ann", "disabled")
    hub.add("bob", server=True)
    in_browsers(hub, "bob", "three")
    await people.end("bob", "session")
    assert told(hub) == [("login_ended", "ann", {"tokens": 2})]
    await people.end("bob", "disabled")
    assert told(hub)[1:] == [("login_ended", "bob", {"tokens": 0})], "those of browsers ended with the login"


async def test_an_admin_right_by_a_group_is_news_as_often_as_it_changes(hub: Hub) -> None:
    hub.add("ann")
    hub.db.add_all([orm.Role(name=name) for name in ("user", "admin")])
    people = HubPeople(hub, decides_admins=True, unseen_s=DAY_S)
    for admin in (False, True, True, False):
        await people.keep("ann", ProviderIdentity("i", "s-ann", "ann", "", False, (), admin), [], {})
        assert hub.users[orm.User.find(hub.db, "ann")].admin is admin
    assert told(hub) == [("group_admin", "ann", {"admin": True}), ("group_admin", "ann", {"admin": False})]


def told(hub: Hub) -> list[tuple[str, str, dict[str, Any]]]:
    """Return what the outbox has for the service, without keys."""
    rows = hub.db.query(outbox.OutboxEntry).order_by(outbox.OutboxEntry.id)
    found = [(row.kind, row.user, json.loads(row.fields)) for row in rows]
    assert len({fields.pop("once") for _, _, fields in found}) == len(found)
    return found

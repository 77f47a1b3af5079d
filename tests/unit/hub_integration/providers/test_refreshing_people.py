"""How people stand at their provider is asked anew: one request of each at a time, who is busy first, and nobody is lost meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlp_hub.hub_integration.providers.protocols.provider import (
    AuthState,
    LoginEnded,
    NotStoredError,
    ProviderIdentity,
    ProviderUnreachable,
)
from mlp_hub.hub_integration.providers.sync import refresh
from mlp_hub.hub_integration.providers.sync.refresh import (
    AWAY_AFTER,
    AWAY_AGAIN_S,
    TOGETHER,
    ProviderPass,
    Refresher,
    whom_to_ask,
)
from mlp_hub.service.tenants.groups import policy_of
from mlp_language.message import msg
from mlp_spawner.errors import ServiceUnreachable
from support.waiting import until

POLICY = policy_of(["/ml/{tenant} -> {tenant}"], title="Keycloak")
AWAY = ProviderUnreachable(msg("it does not answer"))


class World:
    """A provider, a hub and a service, all of them made up."""

    def __init__(self, *people: str) -> None:
        self.now = 1000.0
        self.groups: dict[str, list[str]] = {name: ["/ml/red", "/other"] for name in people}
        self.answers: dict[str, LoginEnded | ProviderUnreachable] = {}
        self.states: dict[str, dict[str, Any]] = {name: {"name": name, "use": 0} for name in people}
        self.others: dict[str, list[dict[str, Any]]] = {}
        """Logins of whose other browsers are kept."""
        self.kept: dict[str, Sequence[str]] = {}
        self.used: set[tuple[str, int]] = set()
        self.full = False
        """Whether the hub's database takes no writes."""
        self.broken = False
        """Whether what is stored fails for another reason than the database."""
        self.refused = 0
        self.ended: list[tuple[str, str]] = []
        self.gone: set[str] = set()
        self.servers: set[str] = set()
        self.jobs: list[str] = []
        self.told: list[tuple[str, dict[str, object]]] = []
        self.asked: list[str] = []
        self.refuses = ""
        self.service_there = True
        self.there: list[bool] = []
        self.away = False
        self.left = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.refresher = Refresher(self, self, self, POLICY, lambda: self.now, every_s=30)
        self.provider_pass = ProviderPass(self.refresher, self, self, every_s=30)

    # the provider: each refresh token holds once
    async def refreshed(
        self, auth_state: AuthState
    ) -> tuple[ProviderIdentity, dict[str, Any]] | LoginEnded | ProviderUnreachable:
        name = str(auth_state["name"])
        self.asked.append(name)
        await self.gate.wait()
        if name in self.answers:
            return self.answers[name]
        assert (name, auth_state["use"]) not in self.used, "a refresh token was used twice"
        self.used.add((name, auth_state["use"]))
        identity = ProviderIdentity("i", name, name, "", False, tuple(self.groups[name]), admin=False)
        return identity, {**auth_state, "use": auth_state["use"] + 1}

    async def unreachable(self) -> ProviderUnreachable | None:
        return AWAY if self.away else None

    # the hub
    def end_servers_left(self) -> None:
        self.left += 1

    async def state_of(self, name: str) -> AuthState | None:
        return self.states.get(name)

    async def keep(
        self, name: str, identity: ProviderIdentity, groups: Sequence[str], state: Mapping[str, Any]
    ) -> None:
        assert identity.subject == name
        if self.full:
            self.refused += 1
            raise NotStoredError("the disk is full")
        if self.broken:
            self.refused += 1
            raise ValueError("the key does not fit")
        self.states[name], self.kept[name] = dict(state), list(groups)

    def note_identity(self, name: str, identity: ProviderIdentity, groups: Sequence[str]) -> None:
        self.kept[name] = groups

    async def go_on_by_another(self, name: str, ended: AuthState) -> AuthState | None:
        if not self.others.get(name):
            return None
        self.answers.pop(name, None)
        self.states[name] = self.others[name].pop()
        return self.states[name]

    async def end(self, name: str, why: str) -> None:
        self.ended.append((name, why))
        self.states.pop(name)
        if why == "disabled":
            self.gone.add(name)
            self.servers.discard(name)

    def busy(self) -> set[str]:
        return set(self.servers)

    def present(self) -> set[str]:
        return set(self.states)

    def among(self, names: Collection[str]) -> set[str]:
        return {name for name in names if name in self.groups}

    def disabled(self) -> set[str]:
        return set(self.gone)

    # the service
    async def report_identity(self, user: str, **told: object) -> None:
        if not self.service_there:
            raise ServiceUnreachable("away")
        self.told.append((user, told))

    async def working(self) -> list[str]:
        if not self.service_there:
            raise ServiceUnreachable("away")
        return self.jobs

    async def report_provider(self, *, away: bool, refuses: str) -> None:
        if not self.service_there:
            raise ServiceUnreachable("away")
        self.there.append(not away)
        self.refuses = refuses


async def test_many_requests_at_once_use_one_refresh_token_once() -> None:
    world = World("ann")
    world.gate.clear()
    requests = [asyncio.create_task(world.refresher.stays("ann")) for _ in range(20)]
    await asyncio.sleep(0)
    requests[0].cancel()
    world.gate.set()
    answers = await asyncio.gather(*requests, return_exceptions=True)
    assert answers[1:] == [True] * 19
    assert world.asked == ["ann"]
    assert world.states["ann"]["use"] == 1


async def test_a_fresh_answer_is_not_requested_again_and_an_unchanged_one_is_reported_once() -> None:
    world = World("ann")
    for _ in range(5):
        assert await world.refresher.stays("ann")
    assert world.asked == ["ann"]
    world.now += 30
    assert await world.refresher.stays("ann")
    assert world.asked == ["ann", "ann"]
    assert world.told == [("ann", {"groups": ["/ml/red"], "left_out": []})]


async def test_after_a_session_ends_the_user_is_refreshed_by_another_browser_if_one_remains() -> None:
    world = World("ann")
    world.others["ann"] = [{"name": "ann", "use": 7}]
    world.answers["ann"] = LoginEnded("session")
    assert await world.refresher.stays("ann")
    assert world.states["ann"] == {"name": "ann", "use": 8}
    assert world.ended == []
    world.now += 30
    world.answers["ann"] = LoginEnded("session")
    assert not await world.refresher.stays("ann")
    assert world.ended == [("ann", "session")]


async def test_a_disabled_account_does_not_continue_by_another_browser() -> None:
    world = World("ann")
    world.others["ann"] = [{"name": "ann", "use": 7}]
    world.answers["ann"] = LoginEnded("disabled")
    assert not await world.refresher.stays("ann")
    assert world.ended == [("ann", "disabled")]


async def test_a_note_of_the_end_of_one_session_leaves_the_others() -> None:
    world = World("ann")
    world.others["ann"] = [{"name": "ann", "use": 7}]
    await world.refresher.end_session("ann", world.states["ann"])
    assert world.ended == []
    await world.refresher.end_session("ann", world.states["ann"])
    assert world.ended == [("ann", "session")]


async def test_a_lost_group_is_told_without_a_request_of_the_person_who_has_only_a_job() -> None:
    world = World("ann", "bob")
    await world.provider_pass.turn(world.now)
    world.told.clear()
    world.groups["ann"] = []
    world.jobs = ["ann", "stranger"]
    world.now += 45
    await world.provider_pass.turn(world.now)
    assert world.asked[2:] == ["ann", "bob"]
    assert world.told == [("ann", {"groups": [], "left_out": []})]
    assert world.kept["ann"] == []


async def test_a_disabled_account_ends_and_the_service_is_notified_as_long_as_jobs_exist() -> None:
    world = World("ann")
    world.servers, world.jobs = {"ann"}, ["ann"]
    world.answers["ann"] = LoginEnded("disabled")
    await world.provider_pass.turn(world.now)
    assert world.ended == [("ann", "disabled")]
    assert world.told == [("ann", {"ended": "disabled"})]
    await world.provider_pass.turn(world.now)
    assert world.told[1:] == [("ann", {"ended": "disabled"})]
    world.jobs = []
    world.now += 60
    await world.provider_pass.turn(world.now)
    assert len(world.told) == 2
    assert world.asked == ["ann"]


async def test_the_service_hears_the_provider_s_words_against_the_hub_until_a_login_succeeds() -> None:
    world = World("ann")
    world.refresher.login_refused = msg("the secret is wrong")
    await world.provider_pass.turn(world.now)
    assert (world.there, world.refuses) == ([True], "the secret is wrong")
    world.refresher.arrived("ann")
    await world.provider_pass.turn(world.now)
    assert world.refuses == ""
    world.answers["ann"] = ProviderUnreachable(msg("it is another realm"), misconfigured=True)
    world.now += 30
    await world.provider_pass.turn(world.now)
    assert (world.there[-1], world.refuses) == (False, "it is another realm")


async def test_a_login_that_ended_at_the_provider_ends_here_and_is_asked_about_no_more() -> None:
    world = World("ann")
    world.answers["ann"] = LoginEnded("session")
    assert not await world.refresher.stays("ann")
    assert world.ended == [("ann", "session")]
    world.jobs, world.now = ["ann"], world.now + 60
    await world.provider_pass.turn(world.now)
    assert world.asked == ["ann"]
    assert world.told == [("ann", {"ended": "session"})]


async def test_while_the_provider_is_away_all_stay_and_a_turn_is_given_up_soon() -> None:
    names = [f"u{n}" for n in range(10 * TOGETHER)]
    world = World(*names)
    world.answers = dict.fromkeys(names, AWAY)
    assert await world.refresher.stays("u0")
    asked = await world.provider_pass.turn(world.now)
    assert AWAY_AFTER <= asked < AWAY_AFTER + TOGETHER
    assert world.refresher.away == AWAY.message
    assert (world.ended, world.told) == ([], [])
    assert world.there == [False]
    world.answers = {}
    world.states = {name: world.states[name] for name in names[:3]}
    await world.provider_pass.turn(world.now)
    assert world.refresher.away is None
    assert world.there == [False, True]
    assert {name for name, _ in world.told} == set(names[:3])


async def test_a_provider_that_hangs_holds_a_request_for_a_moment_and_its_answer_counts_when_it_comes() -> (
    None
):
    world = World("ann")
    world.answers["ann"] = LoginEnded("disabled")
    world.gate.clear()
    for _ in range(1000):  # waited for once, and not again: else the test would take an hour
        assert await world.refresher.stays("ann")
    assert world.asked == ["ann"]
    world.gate.set()
    await world.refresher.refresh_person("ann")
    assert world.ended == [("ann", "disabled")]


async def test_a_provider_that_is_away_is_asked_now_and_then_and_nobody_waits_for_it() -> None:
    world = World(*(f"u{n}" for n in range(50)))
    world.away = True
    await world.refresher.seek()
    world.gate.clear()
    for _ in range(3):
        world.now += AWAY_AGAIN_S
        for name in world.states:
            assert await world.refresher.stays(name)
    await asyncio.sleep(0)
    assert world.asked == ["u0", "u1", "u2"]
    world.gate.set()
    await world.refresher.refresh_person("u0")
    assert world.refresher.away is None


async def test_with_nobody_to_ask_about_the_provider_itself_is_looked_for_and_each_turn_ends_what_is_left() -> (
    None
):
    world = World()
    for world.away in (False, True, True, False):
        assert await world.provider_pass.turn(world.now) == 0
    assert world.there == [True, False, False, True]
    assert world.left == 4
    world.service_there = False  # it is told at the next turn
    await world.provider_pass.turn(world.now)
    assert world.there == [True, False, False, True]


async def test_a_login_during_a_refresh_waits_and_keeps_the_tokens_that_it_brings() -> None:
    for answer in (None, LoginEnded("disabled")):
        world = World("ann")
        if answer is not None:
            world.answers["ann"] = answer
        world.gate.clear()
        asking = asyncio.create_task(world.refresher.stays("ann"))
        await asyncio.sleep(0)
        arriving = asyncio.create_task(world.refresher.expect("ann"))
        await asyncio.sleep(0)
        assert (world.asked, arriving.done()) == (["ann"], False)
        world.gate.set()
        await arriving
        assert asking.done()
        if answer is None:  # the token of their other browser, which holds once
            assert world.states["ann"]["use"] == 1
        else:
            assert world.ended == [("ann", "disabled")]


async def test_a_renewed_login_that_cannot_be_stored_is_kept_in_memory_and_stored_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(refresh, "STORE_AGAIN_S", 0.001)
    world = World("ann")
    world.full = True
    for use in (1, 2, 3):  # the provider takes each token once
        await world.refresher._wait("ann")  # a try to store in progress would answer without asking
        assert await world.refresher.stays("ann")
        assert not world.refresher.is_due("ann"), "what it said is known"
        assert world.refresher._unstored["ann"][2]["use"] == use
        world.now += 30
    assert (world.states["ann"]["use"], world.ended) == (0, [])
    assert world.told == [("ann", {"groups": ["/ml/red"], "left_out": []})], "the service is told meanwhile"
    refused = world.refused

    async def tried_again() -> bool:
        return world.refused > refused + 2

    async def stored() -> bool:
        return not world.refresher._unstored

    await until(tried_again)
    world.full = False
    await until(stored)
    assert (world.states["ann"]["use"], world.kept["ann"], len(world.asked)) == (3, ["/ml/red"], 3)
    assert await world.refresher.stays("ann")
    assert world.told[1:] == []


async def test_an_answer_that_cannot_be_stored_for_another_reason_than_the_database_is_logged_once_and_given_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(refresh, "STORE_AGAIN_S", 0.001)
    world = World("ann", "bob")
    world.full = True
    for name in ("ann", "bob"):
        assert await world.refresher.stays(name)
    world.full, world.broken = False, True
    refused = world.refused
    async with asyncio.timeout(30):
        await world.refresher._storing.finish()
    assert (world.refresher._unstored, world.refused - refused) == ({}, 2)
    failures = [record for record in caplog.records if record.levelname == "ERROR"]
    assert [record.args for record in failures] == [("ann",), ("bob",)]


async def test_an_unstored_login_is_stored_before_the_next_one_and_forgotten_with_its_session() -> None:
    world = World("ann", "bob")
    world.full = True
    assert await world.refresher.stays("ann")
    assert await world.refresher.stays("bob")
    await world.refresher.expect("ann")  # in vain
    world.full = False
    await world.refresher.expect("ann")
    assert world.states["ann"]["use"] == 1
    world.refresher.arrived("ann")
    world.now += 30
    world.others["bob"], world.answers["bob"] = [{"name": "bob", "use": 7}], LoginEnded("session")
    assert await world.refresher.stays("bob")
    assert world.states["bob"]["use"] == 8
    assert world.refresher._unstored == {}


async def test_a_report_that_the_service_missed_is_repeated() -> None:
    world = World("ann")
    world.service_there = False
    assert await world.refresher.stays("ann")
    world.service_there, world.now = True, world.now + 30
    await world.provider_pass.turn(world.now)
    assert world.told == [("ann", {"groups": ["/ml/red"], "left_out": []})]


@given(
    st.sets(st.integers(0, 60)),
    st.sets(st.integers(0, 60)),
    st.dictionaries(st.integers(0, 60), st.floats(0, 100)),
    st.integers(1, 20),
)
def test_busy_users_are_asked_first_only_due_users_and_never_too_many(
    busy: set[int], present: set[int], looked: dict[int, float], most: int
) -> None:
    names = {str(n): at for n, at in looked.items()}
    some, others = {str(n) for n in busy}, {str(n) for n in present}
    asked = whom_to_ask(some, others, names, due_before=50, most=most)
    assert len(asked) == len(set(asked)) <= most
    assert all(names.get(name, 0) <= 50 for name in asked)
    left = {n for n in some if names.get(n, 0) <= 50} - set(asked)
    assert not left or set(asked) <= some
    waits = [names.get(name, -1.0) for name in asked if name in some]
    assert waits == sorted(waits)


def test_by_and_by_everybody_is_asked_about_however_many_there_are() -> None:
    names = [f"u{n:03}" for n in range(95)]
    looked: dict[str, float] = {}
    for turn in range(10):
        for name in whom_to_ask((), names, looked, due_before=turn - 1.0, most=10):
            looked[name] = float(turn)
    assert set(looked) == set(names)


async def test_the_service_knows_a_user_who_logs_in_before_their_first_page() -> None:
    world = World("ann")
    identity = ProviderIdentity("i", "ann", "ann", "", False, ("/ml/red",), admin=False)
    for world.service_there in (False, True):
        await world.refresher.welcome("ann", identity)
    ((who, told),) = world.told
    assert (who, told["groups"]) == ("ann", ["/ml/red"])


async def test_news_from_the_provider_counts_after_a_request_that_began_earlier() -> None:
    world = World("ann")
    world.gate.clear()
    asking = asyncio.create_task(world.refresher.stays("ann"))
    await asyncio.sleep(0)  # it has begun
    identity = ProviderIdentity("i", "ann", "ann", "", False, ("/ml/blue",), admin=False)
    telling = asyncio.create_task(world.refresher.accept_identity("ann", identity))
    await asyncio.sleep(0)
    assert (world.asked, world.kept) == (["ann"], {})
    world.gate.set()
    await asking
    await telling
    assert world.kept["ann"] == ["/ml/blue"]
    assert [told["groups"] for _, told in world.told] == [["/ml/red"], ["/ml/blue"]]

"""The parts of the HTTP side by themselves: routes, limits, sessions, authentication, queries."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import stat
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from mlp_hub.api import decode
from mlp_hub.api.auth import Authenticator, Credential, TooMany, Unauthorized
from mlp_hub.api.limits import Limiter, Rate
from mlp_hub.api.principal import Kind, Principal, parse_scopes
from mlp_hub.api.replay import Answers
from mlp_hub.api.routes import Relation, Route, RouteTable
from mlp_hub.api.sessions import LIFETIME_S, Sessions, xsrf_matches, xsrf_token
from mlp_hub.api.table import all_routes
from mlp_hub.domain.errors import Refused, Unavailable


async def handler(call: Any) -> None:
    """Do nothing."""


def table(*paths: str) -> RouteTable:
    return RouteTable([Route("GET", path, handler, "", Relation.PUBLIC) for path in paths])


# ---------------------------------------------------------------- routes


def test_a_verb_is_a_route_of_its_own() -> None:
    routes = table("/users/{user}/jobs/{job}", "/users/{user}/jobs/{job}:cancel")
    found = routes.find("GET", "/users/ann/jobs/x:cancel")
    assert found is not None
    assert (found.route.path[-7:], found.params) == (":cancel", {"user": "ann", "job": "x"})
    assert routes.find("GET", "/users/ann/jobs/x:other") is None
    encoded = routes.find("GET", "/users/a%3Ab/jobs/x%3Acancel")
    assert encoded is not None
    assert encoded.params == {"user": "a:b", "job": "x:cancel"}


def test_a_literal_goes_before_a_value_and_two_equal_routes_are_an_error() -> None:
    routes = table("/a/{x}", "/a/b")
    found = routes.find("GET", "/a/b")
    assert found is not None
    assert found.params == {}
    with pytest.raises(ValueError, match="two routes"):
        table("/a/{x}", "/a/{y}")


@given(st.text(max_size=60))
def test_no_path_whatever_breaks_the_table(path: str) -> None:
    found = table("/users/{user}/jobs/{job}").find("GET", path)
    if found is not None:
        assert all("/" not in v and "\0" not in v and v for v in found.params.values())


# ----------------------------------------------------------------- limits


def test_a_bucket_gives_its_burst_and_fills_again() -> None:
    now = [0.0]
    limiter = Limiter(lambda: now[0], {"a": Rate(2, 3)})
    assert [limiter.take("a", "ann") for _ in range(4)] == [0, 0, 0, 1]
    assert limiter.take("a", "bob") == 0
    now[0] = 0.5
    assert [limiter.take("a", "ann") for _ in range(2)] == [0, 1]


# --------------------------------------------------------------- sessions


def test_a_session_outlives_its_store_and_ends(tmp_path: Path) -> None:
    now = [1000.0]
    first = Sessions(tmp_path / "s", lambda: now[0])
    session = first.create("ann", "token-é")
    second = Sessions(tmp_path / "s", lambda: now[0])
    assert second.get(session.id) == session
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o700
    assert [stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "s").iterdir()] == [0o600]
    second.end(session.id)
    assert Sessions(tmp_path / "s", lambda: now[0]).get(session.id) is None
    other = second.create("ann", "t")
    now[0] += LIFETIME_S
    assert second.get(other.id) is None
    for wrong in ("", "x", "../s", "é", "x" * 200):
        assert second.get(wrong) is None


def test_a_damaged_session_file_is_no_session(tmp_path: Path) -> None:
    sessions = Sessions(tmp_path, lambda: 0.0)
    session = sessions.create("ann", "t")
    next(tmp_path.iterdir()).write_bytes(b"{")
    assert Sessions(tmp_path, lambda: 0.0).get(session.id) is None


def test_an_xsrf_token_belongs_to_one_session() -> None:
    assert xsrf_matches("a", xsrf_token("a"))
    assert not xsrf_matches("b", xsrf_token("a"))
    assert not xsrf_matches("a", "é")


# --------------------------------------------------------- authentication


class Hub:
    def __init__(self) -> None:
        self.asked = 0
        self.answer: Principal | Exception | None = Principal(Kind.USER, "ann")

    async def user_of_token(self, token: str) -> Principal | None:
        self.asked += 1
        await asyncio.sleep(0)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def authenticator(tmp_path: Path, hub: Hub, now: list[float], **options: Any) -> Authenticator:
    async def no_job(_: str) -> None:
        return None

    return Authenticator(hub, no_job, Sessions(tmp_path, lambda: 0.0), lambda: now[0], **options)


def test_an_identity_is_believed_for_three_seconds_and_asked_for_once(tmp_path: Path) -> None:
    async def story() -> None:
        hub, now = Hub(), [0.0]
        auth = authenticator(tmp_path, hub, now)
        await asyncio.gather(*(auth.identify(Credential("t")) for _ in range(10)))
        assert hub.asked == 1
        hub.answer = None
        now[0] = 2.9
        assert (await auth.identify(Credential("t"))).name == "ann"
        now[0] = 3.0
        with pytest.raises(Unauthorized):
            await auth.identify(Credential("t"))
        with pytest.raises(Unauthorized):
            await auth.identify(Credential("t"))
        assert hub.asked == 2

    asyncio.run(story())


def test_a_hub_that_is_down_is_not_taken_for_a_no(tmp_path: Path) -> None:
    async def story() -> None:
        hub, now = Hub(), [0.0]
        auth = authenticator(tmp_path, hub, now)
        await auth.identify(Credential("t"))
        hub.answer = Unavailable("down")
        now[0] = 4.0
        with pytest.raises(Unavailable):
            await auth.identify(Credential("t"))
        hub.answer = Principal(Kind.USER, "ann")
        assert (await auth.identify(Credential("t"))).name == "ann"

    asyncio.run(story())


def test_a_caller_who_goes_away_does_not_take_the_answer_from_others(tmp_path: Path) -> None:
    async def story() -> None:
        auth = authenticator(tmp_path, Hub(), [0.0])
        gone = asyncio.create_task(auth.identify(Credential("t")))
        stays = asyncio.create_task(auth.identify(Credential("t")))
        await asyncio.sleep(0)
        gone.cancel()
        assert (await stays).name == "ann"

    asyncio.run(story())


def test_only_tokens_never_seen_before_count_as_guesses(tmp_path: Path) -> None:
    async def story() -> None:
        hub, now = Hub(), [0.0]
        waits = iter([0, 9])
        auth = authenticator(tmp_path, hub, now, allow_lookup=lambda _: next(waits))
        await auth.identify(Credential("good"))
        for now[0] in (5.0, 10.0):
            await auth.identify(Credential("good"))
        with pytest.raises(TooMany):
            await auth.identify(Credential("guess"))

    asyncio.run(story())


def test_a_scopes_filter_gives_the_callers_own_objects_or_nothing() -> None:
    held = ["a", "b!user=ann", "c!user=bob", "d!group=x", "access:services!service=mlp", "e!user"]
    assert parse_scopes("ann", held) == (
        frozenset({"a", "access:services!service=mlp"}),
        frozenset({"b", "e"}),
    )


# ------------------------------------------------------------ the rest


def test_an_idempotent_request_is_done_once() -> None:
    async def story() -> None:
        done: list[int] = []

        async def work() -> int:
            done.append(1)
            return len(done)

        answers = Answers()
        assert [await answers.once("ann", "op", "k", b"x", work) for _ in range(2)] == [1, 1]
        assert await answers.once("bob", "op", "k", b"x", work) == 2
        with pytest.raises(Refused, match="take a new one"):
            await answers.once("ann", "op", "k", b"y", work)

    asyncio.run(story())


class Query(Struct, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1)] = 10
    rate: float | None = None
    text: str = ""
    on: bool = False
    either: int | str = 1


def test_a_querys_values_become_what_their_fields_are() -> None:
    assert decode.query("limit=5&rate=0.5&text=7&on=1&either=3", Query) == Query(5, 0.5, "7", True, 3)
    assert decode.query("either=2:8&rate=1e3", Query) == Query(rate=1000.0, either="2:8")
    assert decode.query("", Query) == Query()


def test_every_pattern_that_a_body_or_query_must_match_is_told_in_words() -> None:
    kinds = [kind for route in all_routes() for kind in (route.body, route.query) if kind is not None]
    schemas = json.dumps(msgspec.json.schema_components(kinds))
    patterns = {json.loads(found) for found in re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', schemas)}
    assert len(patterns) >= 4
    assert patterns == set(decode.PATTERN_WORDS)


@given(st.text(max_size=80))
def test_no_query_whatever_does_more_than_be_refused(text: str) -> None:
    with contextlib.suppress(Refused):
        decode.query(text, Query)


@given(st.binary(max_size=200))
def test_no_body_whatever_does_more_than_be_refused(raw: bytes) -> None:
    with contextlib.suppress(Refused):
        decode.body(raw, Query)


@given(st.text(max_size=5000))
def test_a_shown_value_is_short_and_on_one_line(text: str) -> None:
    shown = decode.clip(text)
    assert len(shown) <= decode.SHOWN + 3
    assert shown.isprintable()

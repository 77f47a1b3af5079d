"""The parts of the HTTP side by themselves: routes, limits, sessions, authentication, queries."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct
from sqlalchemy import text

from mlp_api.jobs.jobs import JobCreate
from mlp_api.types import TenantCreate
from mlp_hub.api.auth.authentication import Authenticator, Credential, TooMany, Unauthorized
from mlp_hub.api.auth.principal import CallerKind, Principal, parse_scopes
from mlp_hub.api.auth.sessions import BELIEVED_S, Sessions, xsrf_matches, xsrf_token
from mlp_hub.api.auth.token_uses import TokenUses
from mlp_hub.api.edge import decode
from mlp_hub.api.edge.limits import Limiter, Rate
from mlp_hub.api.edge.replay import RecentAnswers
from mlp_hub.api.routes import Relation, Route, RouteTable
from mlp_hub.api.table import all_routes
from mlp_hub.domain.errors import Refused, Unavailable
from mlp_hub.store.database import Database


async def handler(call: Any) -> None:
    """Do nothing."""


def table(*paths: str) -> RouteTable:
    return RouteTable([Route("GET", path, handler, "", Relation.PUBLIC) for path in paths])


# ---------------------------------------------------------------- routes


def test_a_verb_is_a_separate_route() -> None:
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
    assert [limiter.take_token("a", "ann") for _ in range(4)] == [0, 0, 0, 1]
    assert limiter.take_token("a", "bob") == 0
    now[0] = 0.5
    assert [limiter.take_token("a", "ann") for _ in range(2)] == [0, 1]


# --------------------------------------------------------------- sessions


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    made = Database(str(tmp_path / "mlp.sqlite"))
    made.create_schema()
    yield made
    made.close()


async def test_a_session_outlives_its_service_and_ends_for_all_replicas(db: Database) -> None:
    now = [1000.0]
    first = Sessions(db, lambda: now[0])
    session = await first.create("ann", "token-é")
    second = Sessions(db, lambda: now[0])
    assert await second.get(session.id) == session
    await second.end(session.id)
    assert await second.get(session.id) is None
    now[0] += BELIEVED_S  # so long the other may believe what it has read
    assert await first.get(session.id) is None
    other = await second.create("ann", "t")
    now[0] += 14 * 86_400
    assert await second.get(other.id) is None
    for wrong in ("", "x", "../s", "é", "x" * 200):
        assert await second.get(wrong) is None


async def test_a_session_that_ends_while_it_is_read_is_not_known_afterwards(db: Database) -> None:
    session = await Sessions(db, lambda: 0.0).create("ann", "t")
    for _ in range(20):
        sessions = Sessions(db, lambda: 0.0)
        await asyncio.gather(sessions.get(session.id), sessions.end(session.id), sessions.get(session.id))
        assert await sessions.get(session.id) is None
        session = await sessions.create("ann", "t")


def test_the_database_reveals_neither_cookie_nor_token_and_expired_sessions_are_removed(
    db: Database,
) -> None:
    session = asyncio.run(Sessions(db, lambda: 0.0).create("ann", "a-secret-token"))
    with db.begin() as tx:
        (row,) = tx.connection.execute(text("SELECT * FROM browser_session")).all()
        for secret in (session.id, session.token):
            assert secret not in str(row)
            assert secret.encode().hex() not in f"{row} {row.masked.hex()}"
        assert tx.sessions.delete_expired(14 * 86_400 - 1) == 0
        assert tx.sessions.delete_expired(14 * 86_400) == 1


def test_an_xsrf_token_belongs_to_one_session() -> None:
    assert xsrf_matches("a", xsrf_token("a"))
    assert not xsrf_matches("b", xsrf_token("a"))
    assert not xsrf_matches("a", "é")


# --------------------------------------------------------- authentication


class Hub:
    def __init__(self) -> None:
        self.asked = 0
        self.answer: Principal | Exception | None = Principal(CallerKind.USER, "ann")

    async def user_of_token(self, token: str) -> Principal | None:
        self.asked += 1
        await asyncio.sleep(0)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def authenticator(db: Database, hub: Hub, now: list[float], **options: Any) -> Authenticator:
    async def no_job(_: str) -> None:
        return None

    return Authenticator(hub, no_job, Sessions(db, lambda: 0.0), lambda: now[0], **options)


async def test_an_identity_is_believed_for_three_seconds_and_asked_for_once(db: Database) -> None:
    hub, now = Hub(), [0.0]
    auth = authenticator(db, hub, now)
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


async def test_token_addresses_are_also_recorded_for_a_token_that_reuses_the_id_of_an_ended_one() -> None:
    told: list[tuple[str, str]] = []

    class Writing:
        async def write(self, work: Any) -> None:
            uses = SimpleNamespace(set=lambda token, user, *_: told.append((token, user)))
            work(SimpleNamespace(token_uses=uses))

    uses = TokenUses(cast("Database", Writing()), lambda: 0.0, lambda: 0.0)
    idle, dora = (Principal(CallerKind.USER, name, token_id="a9") for name in ("idle", "dora"))
    for one, key in ((idle, b"1"), (idle, b"1"), (dora, b"2"), (dora, b"3")):
        uses.note(one, key, "192.0.2.7")
        await asyncio.sleep(0)
    assert told == [("a9", "idle"), ("a9", "dora"), ("a9", "dora")]


async def test_a_hub_that_is_down_is_not_taken_for_a_no(db: Database) -> None:
    hub, now = Hub(), [0.0]
    auth = authenticator(db, hub, now)
    await auth.identify(Credential("t"))
    hub.answer = Unavailable("down")
    now[0] = 4.0
    with pytest.raises(Unavailable):
        await auth.identify(Credential("t"))
    hub.answer = Principal(CallerKind.USER, "ann")
    assert (await auth.identify(Credential("t"))).name == "ann"


async def test_a_caller_who_goes_away_does_not_take_the_answer_from_others(db: Database) -> None:
    auth = authenticator(db, Hub(), [0.0])
    gone = asyncio.create_task(auth.identify(Credential("t")))
    stays = asyncio.create_task(auth.identify(Credential("t")))
    await asyncio.sleep(0)
    gone.cancel()
    assert (await stays).name == "ann"


async def test_only_tokens_never_seen_before_count_as_guesses(db: Database) -> None:
    hub, now = Hub(), [0.0]
    waits = iter([0, 9])
    auth = authenticator(db, hub, now, allow_lookup=lambda _: next(waits))
    await auth.identify(Credential("good"))
    for now[0] in (5.0, 10.0):
        await auth.identify(Credential("good"))
    with pytest.raises(TooMany):
        await auth.identify(Credential("guess"))


def test_a_scopes_filter_gives_the_callers_own_objects_or_nothing() -> None:
    held = ["a", "b!user=ann", "c!user=bob", "d!group=x", "access:services!service=mlp", "e!user"]
    assert parse_scopes("ann", held) == (
        frozenset({"a", "access:services!service=mlp"}),
        frozenset({"b", "e"}),
    )


# ------------------------------------------------------------ the rest


async def test_an_idempotent_request_is_done_once() -> None:
    done: list[int] = []

    async def work() -> int:
        done.append(1)
        return len(done)

    answers = RecentAnswers()
    assert [await answers.once("ann", "op", "k", b"x", work) for _ in range(2)] == [1, 1]
    assert await answers.once("bob", "op", "k", b"x", work) == 2
    with pytest.raises(Refused, match="use a new one"):
        await answers.once("ann", "op", "k", b"y", work)


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


MANY = Literal[tuple(str(n) for n in range(decode.MOST_CHOICES + 1))]  # type: ignore[valid-type]


class Choosing(Struct):
    """Fields that take some words only, as deep as bodies have them."""

    noted: Annotated[Literal["closed", "asked"], Meta(description="who may")] = "closed"
    listed: tuple[Annotated[Literal["a", "b"], Meta(description="x")], ...] = ()
    within: list[Choosing] | None = None
    named: dict[str, Choosing] | None = None
    many: MANY = "0"  # type: ignore[valid-type]


@pytest.mark.parametrize(
    ("wrong", "shown"),
    [
        ("[" + "[]," * 300_000 + "[]]", "ps is [[],[],"),
        ('{"k": ' + "[" + "{}," * 300_000 + "{}]}", 'ps is {"k": [{},'),
        ('"' + "x" * 900_000 + '"', 'ps is "xxx'),
    ],
)
def test_attack_a_large_value_that_is_wrong_is_shown_without_being_taken_apart(
    wrong: str, shown: str
) -> None:
    raw = f'{{"name": "x", "code": "y", "ps": {wrong}}}'.encode()
    tracemalloc.start()
    try:
        with pytest.raises(Refused) as refused:
            decode.body(raw, JobCreate)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert str(refused.value.message).startswith(shown)
    assert "a whole number" in str(refused.value.message)
    assert most < 4 * len(raw)


@pytest.mark.parametrize(
    "part", [b"[" * 50_000, b'"\xff"', b'"\\ud800"', b"[" * 500 + b"]" * 500, b"1e400", b"NaN"]
)
def test_attack_a_part_that_is_not_json_is_refused_whatever_else_is_wrong(part: bytes) -> None:
    for raw in (
        b'{"ps": "x", "code": %s, "env": %s}',
        b'{"env": {"A": %s}, "code": %s}',
        b'{"args": [%s, 5], "entry": %s}',
    ):
        with pytest.raises(Refused):
            decode.body(raw % (b'"' + b"y" * 100_000 + b'"', part), JobCreate)
        with pytest.raises(Refused):
            decode.body(raw % (part, b'"' + b"y" * 100_000 + b'"'), JobCreate)


@pytest.mark.parametrize("raw", [b'[{"a":', b"[1, \xff]", b"[" * 100])
def test_a_body_that_is_wrong_and_not_json_either_is_not_called_null(raw: bytes) -> None:
    with pytest.raises(Refused) as refused:
        decode.body(raw, JobCreate)
    assert str(refused.value.message) == "the body is wrong; it must be an object"


def test_a_wrong_field_deep_in_a_large_body_is_named() -> None:
    raw = json.dumps({"name": "x", "code": "y" * 100_000, "args": ["a", 5]}).encode()
    with pytest.raises(Refused, match=r"args.1. is 5; it must be a text"):
        decode.body(raw, JobCreate)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ('{"noted": "requests"}', "noted is 'requests'; it must be one of asked, closed"),
        ('{"listed": ["a", "c"]}', "listed[1] is 'c'; it must be one of a, b"),
        ('{"within": [{"noted": "x"}]}', "within[0].noted is 'x'; it must be one of asked, closed"),
        ('{"named": {"k": {"noted": "x"}}}', "named[...].noted is wrong; it must be one of asked, closed"),
        ('{"many": "x"}', "many is 'x'; it must be one of the values that the documentation lists"),
    ],
)
def test_a_field_that_takes_a_few_words_names_them(raw: str, said: str) -> None:
    with pytest.raises(Refused) as refused:
        decode.body(raw.encode(), Choosing)
    assert str(refused.value.message) == said


def test_an_invalid_choice_is_refused_with_the_allowed_values() -> None:
    with pytest.raises(Refused, match=r"joining is 'requests'; it must be one of asked, closed"):
        decode.body(b'{"name": "red", "joining": "requests"}', TenantCreate)


@given(st.text(max_size=5000))
def test_a_shown_value_is_short_and_on_one_line(text: str) -> None:
    shown = decode.clip(text)
    assert len(shown) <= decode.SHOWN + 3
    assert shown.isprintable()

"""Accounts and keys: what a name leaves to its next owner, who learns of whom, and who may share an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import text

from mlp_hub.api.hubclient import HubAccount
from mlp_hub.domain.errors import Refused, Unavailable
from mlp_language.message import msg
from support.rigs.api_rig import ApiRig

PASSWORD = "long enough"


def sign_up(rig: ApiRig, name: str, tenant: str | None = None, **headers: str) -> int:
    body = {"username": name, "password": PASSWORD, **({"tenant": tenant} if tenant else {})}
    return rig.ask("POST", "/users", body, headers=headers).status


def places(rig: ApiRig, name: str) -> list[tuple[str, str]]:
    return [(m.tenant, str(m.role)) for m in rig.run(rig.platform.tenants.of_user(name))]


def test_a_namesake_of_a_refused_sign_up_gets_nothing_of_theirs(rig: ApiRig) -> None:
    assert sign_up(rig, "dave", "red") == 201
    # red's admin cannot make a place for who is not in yet, nor can a platform admin
    for who in (rig.rita, rig.root_user):
        answer = rig.ask("PUT", "/tenants/red/members/dave", {"role": "admin"}, token=who)
        assert (answer.status, answer.json["reason"]) == (403, "NotFound")
    # and a place that was made before that was so does not outlive the refusal
    for tenant in ("red", "default"):
        rig.run(rig.platform.tenants.set_member(tenant, "dave", "admin"))
    assert rig.ask("DELETE", "/users/dave", token=rig.rita).status == 200
    assert sign_up(rig, "dave", "blue") == 201
    assert rig.ask("PUT", "/users/dave:approve", token=rig.blue).json["tenants"] == ["blue"]
    assert places(rig, "dave") == [("blue", "member")]
    dave = rig.hub.user("dave", "dave-token")
    assert rig.ask("GET", "/tenants/red", token=dave).json["reason"] == "NotFound"


def test_a_place_made_before_the_first_approval_is_not_kept(rig: ApiRig) -> None:
    assert sign_up(rig, "dora", "blue") == 201
    rig.run(rig.platform.tenants.set_member("red", "dora", "admin"))
    assert rig.ask("PUT", "/users/dora:approve", token=rig.root_user).status == 200
    assert places(rig, "dora") == [("blue", "member")]


def test_a_user_who_is_let_in_again_keeps_their_memberships(rig: ApiRig) -> None:
    for action in ("", ":approve"):
        assert rig.ask("PUT", f"/users/ann{action}", token=rig.root_user).status == 200
    assert places(rig, "ann") == [("red", "member")]


def test_an_application_is_not_left_to_a_namesake(rig: ApiRig) -> None:
    assert sign_up(rig, "dina", "red") == 201
    rig.hub.accounts.pop("dina")  # deleted behind our back
    assert sign_up(rig, "dina") == 201
    answer = rig.ask("PUT", "/users/dina:approve", token=rig.rita)
    assert answer.json["reason"] == "NotFound"


def test_a_tenants_admin_learns_nothing_of_users_by_adding_them(rig: ApiRig) -> None:
    """Nobody, who is elsewhere, who waits and the platform's admin are refused alike; who is free is taken in."""
    assert sign_up(rig, "pia") == 201
    said = set()
    for name in ("nobodyx", "bob", "pia", "admin"):
        answer = rig.ask("PUT", f"/tenants/red/members/{name}", token=rig.rita)
        assert answer.status == 403
        said.add((answer.json["reason"], answer.json["msg"].removeprefix(name)))
    assert len(said) == 1, said
    assert places(rig, "admin") == [("default", "member")]
    rig.hub.user("zoe", "zoe-token")
    assert rig.ask("PUT", "/tenants/red/members/zoe", token=rig.rita).status == 200
    assert rig.ask("PUT", "/tenants/red/members/zoe", {"role": "admin"}, token=rig.rita).status == 200


def test_a_teams_admin_takes_no_role_in_default_from_whom_they_take_in(rig: ApiRig) -> None:
    rig.hub.user("dela", "dela-token")
    assert (
        rig.ask("PUT", "/tenants/default/members/dela", {"role": "admin"}, token=rig.root_user).status == 200
    )
    assert rig.ask("PUT", "/tenants/red/members/dela", token=rig.rita).status == 200
    assert places(rig, "dela") == [("default", "admin"), ("red", "member")]
    assert rig.ask("DELETE", "/tenants/default/members/dela", token=rig.root_user).status == 200


def test_the_hub_receives_the_address_of_a_sign_up_and_its_refusal_comes_back(rig: ApiRig) -> None:
    seen: list[dict[str, Any]] = []
    rig.hub.sign_ups_refused_for = 7
    rig.hub.seen_sign_ups = seen
    try:
        body = {"username": "una", "password": PASSWORD}
        answer = rig.ask("POST", "/users", body, headers={"X-Forwarded-For": "6.6.6.6, 9.9.9.9"})
    finally:
        rig.hub.sign_ups_refused_for = 0
    assert (answer.status, answer.headers["retry-after"]) == (429, "7")
    assert seen == [{"name": "una", "password": PASSWORD, "address": "9.9.9.9"}]


def test_no_page_gets_a_token_for_the_session_of_its_browser(rig: ApiRig) -> None:
    _, browser = rig.session("ann", rig.ann)
    before = len(rig.hub.minted)
    for headers in (
        {"Cookie": browser["Cookie"]},
        {"Cookie": browser["Cookie"], "Sec-Fetch-Site": "none"},
        {**browser, "X-XSRFToken": "0" * 48},
        browser,
    ):
        assert rig.ask("GET", "/users/ann/token", headers=headers).json["reason"] == "Forbidden"
    assert len(rig.hub.minted) == before
    assert rig.ask("GET", "/users/ann/token", token=rig.ann).status == 200


def test_requests_side_by_side_under_one_key_make_one_object(rig: ApiRig) -> None:
    def create(_: int) -> tuple[int, Any]:
        answer = rig.ask(
            "POST", "/tenants", {"name": "once"}, token=rig.root_user, headers={"Idempotency-Key": "k1"}
        )
        return answer.status, answer.json

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(create, range(8)))
    assert all(answer == answers[0] for answer in answers), answers
    assert answers[0][0] == 201


def test_a_failure_under_a_key_reaches_all_waiters_and_can_be_retried(rig: ApiRig) -> None:
    async def story() -> None:
        gate, runs = asyncio.Event(), 0

        async def fails() -> str:
            nonlocal runs
            runs += 1
            await gate.wait()
            raise Refused("Conflict", "no")  # type: ignore[arg-type]

        async def works() -> str:
            return "done"

        answers = rig.service.answers
        two = [asyncio.ensure_future(answers.once("a", "op", "k", b"", fails)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Refused, match="another request"):
            await answers.once("a", "op", "k", b"other", works)
        gate.set()
        assert [type(r) for r in await asyncio.gather(*two, return_exceptions=True)] == [Refused, Refused]
        assert runs == 1
        assert await answers.once("a", "op", "k", b"", works) == "done"

    rig.run(story())


def test_callers_without_a_name_share_no_keys_across_addresses(rig: ApiRig) -> None:
    key = {"Idempotency-Key": "same"}
    assert sign_up(rig, "kim", **key, **{"X-Forwarded-For": "9.9.9.1"}) == 201
    assert sign_up(rig, "kim", **key, **{"X-Forwarded-For": "9.9.9.1"}) == 201  # the same answer again
    assert sign_up(rig, "lee", **key, **{"X-Forwarded-For": "9.9.9.2"}) == 201
    assert {"kim", "lee"} <= set(rig.hub.accounts)


def changes(rig: ApiRig, name: str) -> list[tuple[str, str, dict[str, Any]]]:
    answer = rig.ask("GET", f"/audit?object={name}&limit=1000", token=rig.root_user)
    return [(e["actor"], e["action"], e["detail"]) for e in reversed(answer.json)]


def test_letting_users_in_and_shutting_them_out_is_audited_with_the_actor(rig: ApiRig) -> None:
    assert sign_up(rig, "dieter", "red") == 201
    assert changes(rig, "dieter") == [], "who only asks writes nothing"
    for path in (":approve", ":approve", "", ":approve"):
        assert rig.ask("PUT", f"/users/dieter{path}", token=rig.root_user).status == 200
    number = rig.run(rig.platform.users.get("dieter")).number
    assert changes(rig, "dieter") == [
        ("admin", "user.approve", {"applied_for": "red"}),
        ("system", "user.create", {"message": "when approved", "user_number": number}),
        ("admin", "member.set", {"role": "member", "was": None}),
        ("admin", "user.deactivate", {}),
        ("admin", "user.approve", {"message": "approved again"}),
    ]
    assert sign_up(rig, "dolly", "red") == 201
    assert rig.ask("DELETE", "/users/dolly", token=rig.rita).status == 200
    assert changes(rig, "dolly") == [("rita", "user.refuse", {"applied_for": "red"})]


def test_tokens_are_audited_with_their_requester(rig: ApiRig) -> None:
    asked = {"note": "for the nightly run", "scopes": ["read:users:name!user"], "expires_in": 60}
    made = rig.ask("POST", "/users/bob/token", asked, token=rig.operator)
    assert (made.status, rig.hub.minted[-1]) == (201, {"user": "bob", **asked})
    assert rig.ask("POST", "/users/bob/token", {"note": "all"}, token=rig.operator).status == 201
    assert rig.hub.minted[-1] == {"user": "bob", "note": "all"}
    for _ in range(3):
        assert rig.ask("GET", "/users/bob/token", token=rig.bob).status == 200
    told = [c for c in changes(rig, "bob") if c[1] == "user.token"]
    assert told[0] == (
        "mlp-operator",
        "user.token",
        {"note": "for the nightly run", "scopes": ["read:users:name!user"], "expires": "after 60 s"},
    )
    assert told[1][2] == {"note": "all", "scopes": "all scopes of the user", "expires": "never"}
    assert [(actor, "times" in detail) for actor, _, detail in told[2:]] == [("bob", False)] * 3


@pytest.mark.parametrize("who", ["root_user", "spawner", "bob", "rita", "notebook"])
def test_nobody_but_the_operators_command_asks_for_anothers_token(rig: ApiRig, who: str) -> None:
    before = len(rig.hub.minted)
    answer = rig.ask("POST", "/users/ann/token", {"note": "x"}, token=getattr(rig, who))
    assert answer.status == 403
    assert len(rig.hub.minted) == before


def test_the_hub_says_which_tokens_it_gave_and_nobody_else_may(rig: ApiRig) -> None:
    made = {"actor": "bob", "note": "laptop", "scopes": "all scopes of the user", "expires": "never"}
    for who in ("root_user", "operator", "bob", "notebook"):
        refused = rig.ask("PUT", "/users/bob:token_made", made, token=getattr(rig, who))
        assert refused.status == 403
    assert [c for c in changes(rig, "bob") if c[2].get("note") == "laptop"] == []
    assert rig.ask("PUT", "/users/bob:token_made", made, token=rig.spawner).status == 200
    detail = {"note": "laptop", "scopes": "all scopes of the user", "expires": "never"}
    assert changes(rig, "bob")[-1] == ("bob", "user.token", detail)


def test_the_hub_says_which_tokens_were_ended_there_and_nobody_else_may(rig: ApiRig) -> None:
    ended = {"actor": "bob", "note": "old laptop", "token": "a77"}
    for who in ("root_user", "operator", "bob", "notebook"):
        assert rig.ask("PUT", "/users/bob:token_ended", ended, token=getattr(rig, who)).status == 403
    assert [c for c in changes(rig, "bob") if c[2].get("token") == "a77"] == []
    assert rig.ask("PUT", "/users/bob:token_ended", ended, token=rig.spawner).status == 200
    assert changes(rig, "bob")[-1] == ("bob", "user.token_end", {"note": "old laptop", "token": "a77"})


def test_the_hubs_objection_to_a_token_is_passed_on(rig: ApiRig) -> None:
    asked = {"note": "x", "scopes": ["no-such-scope"]}
    answer = rig.ask("POST", "/users/bob/token", asked, token=rig.operator)
    assert (answer.status, answer.json["msg"]) == (403, "no token for bob: there is no scope no-such-scope")
    assert "no-such-scope" not in str(changes(rig, "bob"))
    for bad in (
        {},
        {"note": ""},
        {"note": "a\nb"},
        {"note": "x", "expires_in": 0},
        {"note": "x", "scopes": []},
    ):
        refused = rig.ask("POST", "/users/bob/token", bad, token=rig.operator)
        assert (refused.status, refused.json["reason"]) == (403, "Invalid"), bad


@pytest.mark.parametrize(
    "body",
    [
        {"tenants": ["red"]},
        {"password": "another one"},
        {"username": "dieter", "state": "NotActive"},
        {"admin": True},
        [],
        "x",
    ],
)
def test_attack_a_change_that_nobody_offers_closes_no_account(rig: ApiRig, body: Any) -> None:
    answer = rig.ask("PUT", "/users/ann", body, token=rig.ann)
    assert (answer.status, answer.json["reason"]) == (403, "Invalid")
    assert rig.ask("GET", "/users/ann", token=rig.ann).json["state"] == "Actived"


@pytest.fixture
def unwritable(rig: ApiRig) -> Iterator[None]:
    """A database that takes everything but entries of the audit log."""
    why = "CREATE TRIGGER full BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'disk is full'); END"
    again = why.replace("full BEFORE INSERT", "full_again BEFORE UPDATE")
    rig.run(rig.platform.db.write(lambda tx: [tx.connection.execute(text(one)) for one in (why, again)]))
    yield
    gone = ("DROP TRIGGER full", "DROP TRIGGER full_again")
    rig.run(rig.platform.db.write(lambda tx: [tx.connection.execute(text(one)) for one in gone]))


def test_no_right_changes_at_the_hub_without_an_entry_in_the_log(rig: ApiRig, unwritable: None) -> None:
    assert sign_up(rig, "nolog", "red") == 201
    before = {name: dict(account) for name, account in rig.hub.accounts.items()}
    minted, tokens = len(rig.hub.minted), dict(rig.hub.tokens)
    rig.hub.requests.clear()
    csv = {"csv": "name,team,admin\nunseen,red,no\n", "dry_run": False}
    for method, path, body in (
        ("PUT", "/users/nolog:approve", None),
        ("PUT", "/users/ann:admin", {"admin": True}),
        ("PUT", "/users/ann:password", {"password": "another long one"}),
        ("PUT", "/users/ann:logout", None),
        ("POST", "/users:import", csv),
    ):
        answer = rig.ask(method, path, body, token=rig.root_user)
        assert answer.status == 503, (path, answer.body)
        assert "msg" in answer.json
    assert rig.ask("PUT", "/users/nolog:approve", token=rig.rita).status == 503
    ended = rig.ask("DELETE", "/users/bob/token", token=rig.bob)
    assert ended.status == 503
    asked = {"note": "x", "scopes": ["read:users:name!user"], "expires_in": 60}
    assert rig.ask("POST", "/users/bob/token", asked, token=rig.operator).status == 503
    assert {name: dict(account) for name, account in rig.hub.accounts.items()} == before
    assert rig.hub.tokens.keys() >= tokens.keys()
    changed = [one for one in rig.hub.requests if not one.startswith("GET ")]
    assert [one for one in changed if "/tokens" not in one and not one.endswith(":find")] == []
    made = len(rig.hub.minted) - minted
    assert made == 1, "a token was made"
    assert any(one.startswith("DELETE /hub/api/users/bob/tokens/") for one in changed), (
        "and ended: nobody has it"
    )


def test_a_change_that_fails_at_the_hub_is_in_the_log_as_failed(rig: ApiRig) -> None:
    assert sign_up(rig, "hubless") == 201
    real = rig.client.authorize

    async def away(name: str) -> HubAccount:
        raise Unavailable(msg("the hub does not answer"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rig.client, "authorize", away)
        assert rig.ask("PUT", "/users/hubless:approve", token=rig.root_user).status == 503
    assert rig.client.authorize == real
    assert changes(rig, "hubless") == [
        ("admin", "user.approve", {}),
        ("admin", "user.approve", {"failed": "the hub does not answer"}),
    ]
    assert rig.ask("DELETE", "/users/hubless", token=rig.root_user).status == 200, "it can still be refused"


def test_nobody_but_the_hub_writes_about_its_changes(rig: ApiRig) -> None:
    told = {"actor": "admin", "action": "user.admin", "admin": True}
    for who in (rig.root_user, rig.operator, rig.rita, rig.bob, rig.notebook):
        assert rig.ask("PUT", "/users/bob:changing", told, token=who).status == 403
    for bad in ({}, {**told, "action": "tenant.delete"}, {**told, "admin": "yes"}, {**told, "x": 1}):
        assert rig.ask("PUT", "/users/bob:changing", bad, token=rig.spawner).status == 403
    assert rig.ask("PUT", "/users/bob:changing", told, token=rig.spawner).status == 200
    assert changes(rig, "bob")[-1] == ("admin", "user.admin", {"admin": True})


def test_a_repeated_report_of_the_hub_is_recorded_once_and_late_news_have_their_time(rig: ApiRig) -> None:
    told = {"actor": "admin", "action": "user.logout", "once": "k1", "at": 1_900_000_000.0}
    before = len(changes(rig, "eva"))
    for _ in range(3):
        assert rig.ask("PUT", "/users/eva:changing", told, token=rig.spawner).status == 200
    ended = {"actor": "admin", "note": "", "token": "a7", "once": "k1"}
    standing = {"ended": "session", "admin": False, "tokens": 2, "once": "k2"}
    for _ in range(2):
        assert rig.ask("PUT", "/users/eva:token_ended", ended, token=rig.spawner).status == 200
        assert rig.ask("PUT", "/users/eva:standing", standing, token=rig.spawner).status == 200
    assert changes(rig, "eva")[before:] == [
        ("admin", "user.logout", {"at": "2030-03-17 17:46:40 UTC"}),
        ("admin", "user.token_end", {"note": "", "token": "a7"}),
        ("system", "user.login_ended", {"why": "disabled", "tokens": 2}),
        ("system", "user.admin", {"admin": False, "source": "group"}),
    ]
    for bad in (
        {"once": ""},
        {"once": "x" * 65},
        {"once": "a\nb"},
        {"at": -1},
        {"at": 1e300},
        {"at": "now"},
    ):
        assert rig.ask("PUT", "/users/eva:changing", {**told, **bad}, token=rig.spawner).status == 403, bad
    assert len(changes(rig, "eva")) == before + 4

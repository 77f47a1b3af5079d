"""Floods of sign-ups and of guessed passwords, by the page and by the API, against a real JupyterHub."""

from __future__ import annotations

import json

import httpx
import pytest

from support.hubs.hub_stack import PASSWORD, Browser, text_of, user_token
from support.local_names import LocalNames
from support.waiting import PATIENCE_S

CONFIG = """
c.NativeAccounts.signup_burst = 4
c.NativeAccounts.login_burst = 6
c.NativeAccounts.signup_every_s = c.NativeAccounts.login_every_s = 10000
c.NativeAccounts.waiting_max = 8
c.NativeAccounts.admin_users = {"chief"}
from mlp_hub.hub_integration.tokens import tokens
tokens.RATES["made"] = tokens.Rate(0.0001, 4)
tokens.HELD_MAX = 4
"""
STACK = {"config": CONFIG}


def from_address(stack, address: str) -> Browser:
    """A browser that calls from another address of the loopback."""
    person = Browser(stack)
    person.http.close()
    person.http = httpx.Client(
        base_url=stack.url,
        follow_redirects=True,
        timeout=PATIENCE_S,
        transport=LocalNames(local_address=address),
        headers={"Sec-Fetch-Mode": "navigate"},
    )
    stack.clients.append(person.http)
    return person


def by_api(stack, name: str, address: str) -> httpx.Response:
    """What the service asks for when somebody of this address signs up by the REST API."""
    body = {"name": name, "password": PASSWORD, "address": address}
    return stack.api("POST", "/mlp/accounts", json=body)


def test_page_and_api_share_one_limit_for_an_address_whatever_its_headers_say(stack):
    mallory = from_address(stack, "127.0.0.2")
    assert [mallory.sign_up(f"m{n}").status_code for n in range(2)] == [201, 201]
    assert [by_api(stack, f"n{n}", "127.0.0.2").status_code for n in range(2)] == [201, 201]
    refused = by_api(stack, "n9", "127.0.0.2")
    assert (refused.status_code, refused.json()["reason"]) == (429, "TooMany")
    assert int(refused.headers["retry-after"]) > 0
    for name in ("X-Forwarded-For", "X-Real-Ip", "X-Forwarded-Host"):
        mallory.http.headers[name] = "9.9.9.9"
        page = mallory.sign_up("m9")
        assert page.status_code == 429
        assert "Too many sign-ups from your address" in text_of(page)
    assert from_address(stack, "127.0.0.3").sign_up("ann").status_code == 201


@pytest.mark.parametrize("name", ["admin", "Admin", "chief", "root", "a b"])
def test_the_api_signs_nobody_up_whom_the_page_would_not(stack, name):
    assert by_api(stack, name, f"by api as {name}").status_code in (400, 409)


def test_the_number_of_pending_sign_ups_is_limited_across_page_and_api(stack):
    answers = [by_api(stack, f"w{n}", f"10.0.0.{n}") for n in range(9)]
    assert answers[0].status_code == 201
    assert answers[-1].status_code == 409
    assert "accounts wait for approval" in answers[-1].json()["msg"]


def test_an_address_that_guesses_waits_and_who_logs_in_rightly_does_not(stack):
    stack.add("eve")
    guesser = from_address(stack, "127.0.0.4")
    answers = [guesser.login(f"nobody{n}", "guessed") for n in range(7)]
    assert ["Invalid username or password" in text_of(a) for a in answers] == [True] * 6 + [False]
    assert answers[-1].status_code == 429
    assert "Too many logins from your address" in text_of(answers[-1])
    assert guesser.login("eve").status_code == 429
    # the API says 403 to whatever keeps somebody out, the right password included
    tokens = {"auth": {"username": "eve", "password": PASSWORD}}
    answer = from_address(stack, "127.0.0.4").http.post("/hub/api/users/eve/tokens", json=tokens)
    assert answer.status_code == 403
    answer = from_address(stack, "127.0.0.5").http.post("/hub/api/users/eve/tokens", json=tokens)
    assert answer.status_code == 201
    for _ in range(8):
        person = from_address(stack, "127.0.0.5")
        assert str(person.login("eve").url).endswith("/hub/home")


def test_attack_a_token_that_no_table_holds_is_refused_before_anything_is_written(stack):
    stack.add("mal")
    token = user_token(stack, "mal", "tokens!user", "read:users:name!user")
    notes = ("\ud800", "a\0b", "n" * 1001, ["n"], 2**63)
    for asked in (*({"note": note} for note in notes), {"expires_in": 2**63}):
        raw = json.dumps(asked)  # half a surrogate pair is text to JSON
        answer = stack.api("POST", "/users/mal/tokens", token, content=raw)
        assert answer.status_code == 400, answer.text
        assert "must be" in answer.json()["message"]
    for asked in ({"roles": ["user"] * 11}, {"scopes": ["self"] * 501}):
        answer = stack.api("POST", "/users/mal/tokens", token, json=asked)
        assert (answer.status_code, "name at most" in answer.json()["message"]) == (400, True), answer.text
    assert "PendingRollbackError" not in stack.log("hub")


def test_attack_one_person_makes_a_bounded_number_of_tokens_in_a_time_and_in_all(stack):
    tokens = {}
    for name in ("max", "nan"):
        stack.add(name)
        tokens[name] = user_token(stack, name, "tokens!user", "read:users:name!user")

    def make(name: str) -> httpx.Response:
        return stack.api(
            "POST", f"/users/{name}/tokens", tokens[name], json={"note": "one more", "scopes": []}
        )

    made = [make("max").json() for _ in range(3)]
    many = make("max")
    assert (many.status_code, "Retry-After" in many.headers) == (429, False)
    assert "revoke some" in many.json()["message"]
    for one in made:
        assert stack.api("DELETE", f"/users/max/tokens/{one['id']}", tokens["max"]).status_code == 204
    assert make("max").status_code == 201
    often = make("max")
    assert (often.status_code, int(often.headers["Retry-After"]) > 0) == (429, True)
    calls = [call for call in stack.ledger()["calls"] if call.startswith("token max ")]
    assert len(calls) == 4, "what was not given is not written down"
    assert make("nan").status_code == 201
    assert user_token(stack, "max"), "the platform's service is bounded by itself"

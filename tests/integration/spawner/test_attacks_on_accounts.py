"""Floods of sign-ups and of guessed passwords, by the page and by the API, against a real JupyterHub."""

from __future__ import annotations

import httpx
import pytest

from hub_stack import PASSWORD, Browser, text_of
from local_names import LocalNames
from waiting import PATIENCE_S

CONFIG = """
c.NativeAccounts.signup_burst = 4
c.NativeAccounts.login_burst = 6
c.NativeAccounts.signup_every_s = c.NativeAccounts.login_every_s = 10000
c.NativeAccounts.waiting_max = 8
c.NativeAccounts.admin_users = {"chief"}
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

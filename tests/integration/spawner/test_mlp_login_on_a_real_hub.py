"""`mlp login` at the hub: who gets a code, where a browser brings it, and for whom it becomes a token."""

from __future__ import annotations

import json
import secrets
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from mlp_hub.hub_integration.tokens.cli_codes import challenge_of
from support.hubs.hub_stack import Browser, text_of

PAGE = "/hub/mlp-login"
BACK = "http://127.0.0.1:49321/"
VERIFIER = "v" * 64
STATE = "s" * 43


def logged_in(stack, name: str) -> Browser:
    stack.add(name)
    person = Browser(stack)
    assert str(person.login(name).url).endswith("/hub/home")
    return person


def asked(**other: str) -> dict[str, str]:
    fields = {
        "challenge": challenge_of(VERIFIER),
        "machine": "laptop",
        "redirect_uri": BACK,
        "state": STATE,
        "days": "7",
    }
    return {**fields, **other}


def say_yes(person: Browser, **other: str):
    """Open the page as `mlp login` does, and send its form; nobody follows to the port of the laptop."""
    fields = asked(**other)
    assert person.get(f"{PAGE}?{urlencode(fields)}").status_code == 200
    xsrf = next(c.value for c in person.http.cookies.jar if c.name == "_xsrf" and c.path == "/hub/")
    return person.http.post(PAGE, data={"_xsrf": xsrf, **fields}, follow_redirects=False)


def code_of(answer) -> str:
    assert answer.status_code == 302, answer.text
    where = urlsplit(answer.headers["Location"])
    assert f"{where.scheme}://{where.netloc}{where.path}" == BACK
    found = parse_qs(where.query)
    assert found["state"] == [STATE]
    return found["code"][0]


def exchange(stack, code: str, verifier: str = VERIFIER, redirect_uri: str = BACK, **headers: str):
    body = {"code": code, "verifier": verifier, "redirect_uri": redirect_uri}
    return Browser(stack).http.post("/hub/api/mlp/cli-token", json=body, headers=headers)


def told(stack, user: str) -> list[dict]:
    calls = [c.split(" ", 2) for c in stack.ledger()["calls"] if c.startswith("token ")]
    return [json.loads(body) for _, name, body in calls if name == user]


def test_a_yes_becomes_a_token_that_is_named_bounded_and_written_down(stack):
    ann = logged_in(stack, "ann")
    shown = text_of(ann.get(f"{PAGE}?{urlencode(asked())}"))
    assert "The command `mlp` on laptop asks for a token of ann. The token is valid for 7 days" in shown
    made = exchange(stack, code_of(say_yes(ann)))
    assert made.status_code == 201, made.text
    assert (made.json()["user"], made.json()["expires_in"]) == ("ann", 7 * 24 * 3600)
    assert made.headers["Cache-Control"] == "no-store"
    (line,) = told(stack, "ann")
    assert (line["actor"], line["note"]) == ("ann", "mlp on laptop")
    assert line["expires"] != "never"
    me = stack.api("GET", "/user", made.json()["token"]).json()
    assert me["name"] == "ann"
    assert "custom:mlp:jobs:write!user=ann" in me["scopes"] or "custom:mlp:jobs:write" in me["scopes"]
    assert not [s for s in me["scopes"] if s.startswith(("tokens", "admin", "servers", "custom:mlp:ledger"))]


def test_without_a_port_the_code_is_shown_and_typed_in(stack):
    bea = logged_in(stack, "bea")
    shown = say_yes(bea, redirect_uri="", state="")
    assert shown.status_code == 200
    code = shown.text.partition('id="mlp-login-code"')[2].partition(">")[2].partition("<")[0]
    assert exchange(stack, code, redirect_uri=BACK).status_code == 403  # and it is gone by that
    code = say_yes(bea, redirect_uri="", state="").text
    code = code.partition('id="mlp-login-code"')[2].partition(">")[2].partition("<")[0]
    assert exchange(stack, code, redirect_uri="").status_code == 201


def test_a_code_gives_one_token(stack):
    code = code_of(say_yes(logged_in(stack, "cid")))
    assert exchange(stack, code).status_code == 201
    again = exchange(stack, code)
    assert again.status_code == 403
    assert "was used" in again.json()["msg"]
    assert len(told(stack, "cid")) == 1


@pytest.mark.parametrize("verifier", ["", "w" * 64, challenge_of(VERIFIER)])
def test_a_code_is_nothing_without_the_verifier(stack, verifier):
    name = f"dan{len(verifier)}"
    code = code_of(say_yes(logged_in(stack, name)))
    assert exchange(stack, code, verifier).status_code == 403
    assert exchange(stack, code).status_code == 403  # it has leaked: nobody gets anything for it
    assert told(stack, name) == []


@pytest.mark.parametrize(
    "redirect_uri",
    [
        "http://evil.example/",
        "https://127.0.0.1:49321/",
        "http://127.0.0.1/",
        "http://localhost:49321/",
        "http://127.0.0.1:49321@evil.example/",
        "http://127.0.0.1:49321/../",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1.evil.example:49321/",
        "//evil.example/",
        "javascript:alert(1)",
    ],
)
def test_a_code_is_brought_to_nobody_but_the_machine_itself(stack, eve, redirect_uri):
    fields = asked(redirect_uri=redirect_uri)
    opened = eve.get(f"{PAGE}?{urlencode(fields)}")
    assert opened.status_code == 400
    assert "redirect_uri" in text_of(opened)
    xsrf = next(c.value for c in eve.http.cookies.jar if c.name == "_xsrf" and c.path == "/hub/")
    sent = eve.http.post(PAGE, data={"_xsrf": xsrf, **fields}, follow_redirects=False)
    assert sent.status_code == 400
    assert "Location" not in sent.headers


@pytest.fixture(scope="module")
def eve(stack) -> Browser:
    return logged_in(stack, "eve")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("challenge", "short"),
        ("state", ""),
        ("machine", "<b>"),
        ("machine", "your bank"),
        ("days", "0"),
        ("days", "9999"),
        ("days", "x"),
    ],
)
def test_an_invalid_request_names_the_wrong_field(stack, eve, field, value):
    answer = eve.get(f"{PAGE}?{urlencode(asked(**{field: value}))}")
    assert answer.status_code == 400
    assert f"{field} is" in text_of(answer)


def test_no_other_page_says_yes_for_somebody(stack, eve):
    forged = eve.http.post(PAGE, data=asked(), follow_redirects=False)
    assert forged.status_code == 403
    assert "Location" not in forged.headers


def test_an_anonymous_user_is_sent_to_the_login_and_comes_back(stack):
    stack.add("fay")
    fay = Browser(stack)
    login = fay.get(f"{PAGE}?{urlencode(asked())}")
    assert "/hub/login?next=" in str(login.url)
    assert fay.http.post(PAGE, data=asked(), follow_redirects=False).status_code == 403


def test_a_user_of_a_browser_without_a_recent_login_is_asked_for_the_password(stack):
    gus = logged_in(stack, "gus")
    for cookie in list(gus.http.cookies.jar):
        if "mlp-recent" in cookie.name:
            gus.http.cookies.jar.clear(cookie.domain, cookie.path, cookie.name)
    asks = gus.get(f"{PAGE}?{urlencode(asked())}")
    assert asks.url.path == "/hub/confirm"
    xsrf = next(c.value for c in gus.http.cookies.jar if c.name == "_xsrf" and c.path == "/hub/")
    refused = gus.http.post(PAGE, data={"_xsrf": xsrf, **asked()}, follow_redirects=False)
    assert refused.status_code == 403


def test_a_code_ends_with_the_sessions_of_the_user_who_confirmed_it(stack):
    hal = logged_in(stack, "hal")
    code = code_of(say_yes(hal))
    hal.post("/hub/change-password", "/hub/logout-everywhere", {})
    assert exchange(stack, code).status_code == 403


def test_a_code_of_a_deactivated_account_gives_nothing(stack):
    ida = logged_in(stack, "ida")
    code = code_of(say_yes(ida))
    assert stack.api("POST", "/mlp/accounts/ida/deauthorize").status_code == 200
    assert exchange(stack, code).status_code == 403
    assert told(stack, "ida") == []


def test_a_token_that_cannot_be_written_down_is_not_given(stack):
    jo = logged_in(stack, "jo")
    count = len(stack.api("GET", "/users/jo/tokens").json()["api_tokens"])
    stack.tell_service(limits={"tokens": 0})
    try:
        refused = exchange(stack, code_of(say_yes(jo)))
    finally:
        stack.tell_service(limits={"tokens": 1})
    assert refused.status_code == 503
    assert len(stack.api("GET", "/users/jo/tokens").json()["api_tokens"]) == count


def test_another_site_cannot_trade_a_code_in(stack):
    code = code_of(say_yes(logged_in(stack, "kai")))
    assert exchange(stack, code, Origin="http://evil.example").status_code == 403


def test_attack_half_a_surrogate_pair_is_not_a_code(stack):
    for wrong in ({"code": "\ud800"}, {"code": "x", "verifier": "\ud800"}, {"code": "a\0"}):
        answer = Browser(stack).http.post("/hub/api/mlp/cli-token", content=json.dumps(wrong))
        assert answer.status_code == 403, answer.text


def test_guessed_codes_are_rate_limited(stack):
    # the last of this file: what it uses up is the address's, and comes back with time
    answers = [exchange(stack, secrets.token_urlsafe(32)).status_code for _ in range(40)]
    assert set(answers) == {403, 429}

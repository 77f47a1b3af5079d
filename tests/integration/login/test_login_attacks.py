"""A real hub whose provider says what it is told: who is let in, who is not, and what they read."""

from __future__ import annotations

import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import jwt
import pytest

from support.hubs.hub_stack import PASSWORD, Browser, HubStack, text_of
from support.login.company_login import back_from_stand_in, led_to, log_in, query, sent_to_provider, step
from support.login.stand_in_issuer import StandIn, published, stand_in, unsigned
from support.waiting import wait_for

TERMINAL = "mlp-cli"
LOGOUT = "http://schemas.openid.net/event/backchannel-logout"


@pytest.fixture(scope="module")
def issuer() -> Iterator[StandIn]:
    with stand_in() as made:
        yield made


@pytest.fixture(scope="module")
def hub(issuer: StandIn) -> Iterator[HubStack]:
    home = Path(tempfile.mkdtemp(prefix="mlp-login-"))
    more = {
        "MLP_LOGIN_ADMIN_GROUPS": "/ops",
        "MLP_LOGIN_TENANTS": "/ml/{tenant} -> {tenant}",
        "MLP_LOGIN_REFRESH_S": "1",
        "MLP_LOGIN_CLI_CLIENT_ID": TERMINAL,
    }
    made = HubStack(home, **issuer.environ(**more))
    try:
        made.up()
        made.add("boss", admin=True)
        made.add("carol")
        yield made
    finally:
        made.down()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(autouse=True)
def honest(hub: HubStack, issuer: StandIn, request: pytest.FixtureRequest) -> None:
    """Have the provider be itself at the start of each test, and a person of the test's own log in."""
    was_down = issuer.down
    name = re.sub(r"[^a-z]", "", request.node.name)[-20:]
    issuer.person = {"sub": f"s-{name}", "preferred_username": name, "groups": ["/ml/red"]}
    issuer.sign, issuer.claims, issuer.auth_time = issuer.signed, {}, None
    issuer.down, issuer.refuses_refresh = False, None
    if was_down:  # the hub remembers that for some seconds
        wait_for(lambda: step(Browser(hub), "/hub/oauth_login").is_redirect, every=0.5)


def on_a_terminal(hub: HubStack, issuer: StandIn, **claims: str) -> httpx.Response:
    """Trade what the provider gives a terminal for a token of the hub's, or be refused."""
    access = issuer.grant()["access_token"]
    body = {"access_token": access, "id_token": issuer.id_token(aud=TERMINAL, **claims), "machine": "laptop"}
    return hub.http.post("/hub/api/mlp/device-token", json=body)


def who(hub: HubStack, issuer: StandIn) -> str:
    return str(issuer.person["preferred_username"])


def test_a_person_logs_in_and_the_hub_knows_their_groups(hub: HubStack, issuer: StandIn) -> None:
    page = log_in(Browser(hub))
    assert page.status_code == 200
    assert page.url.path == "/hub/home"
    model = hub.api("GET", f"/users/{who(hub, issuer)}").json()
    assert (model["groups"], model["admin"]) == (["/ml/red"], False)


def test_administrators_come_and_go_with_their_group(hub: HubStack, issuer: StandIn) -> None:
    issuer.person["groups"] = ["/ops"]
    log_in(Browser(hub))
    assert hub.api("GET", f"/users/{who(hub, issuer)}").json()["admin"] is True
    issuer.person["groups"] = []
    log_in(Browser(hub))
    assert hub.api("GET", f"/users/{who(hub, issuer)}").json()["admin"] is False
    assert hub.api("GET", "/users/boss").json()["admin"] is True


def test_forged_tokens_log_nobody_in(hub: HubStack, issuer: StandIn) -> None:
    for forge in (
        unsigned,
        lambda claims: issuer.signed(claims, "thief", kid="first"),
        lambda claims: issuer.signed({**claims, "iss": "https://evil.example"}),
        lambda claims: issuer.signed({**claims, "aud": "another-app"}),
        lambda claims: issuer.signed({**claims, "exp": 1}),
        lambda claims: issuer.signed({**claims, "nonce": "another"}),
    ):
        issuer.sign = forge
        browser = Browser(hub)
        answer = step(browser, back_from_stand_in(browser, sent_to_provider(browser)))
        assert answer.status_code == 403
        assert "ID token" in text_of(answer)
        assert "Traceback" not in answer.text
        assert step(browser, "/hub/home").is_redirect, "nobody is logged in"
    assert hub.api("GET", f"/users/{who(hub, issuer)}").status_code == 404


def test_a_browser_that_did_not_begin_a_login_finishes_none(hub: HubStack, issuer: StandIn) -> None:
    thief, victim = Browser(hub), Browser(hub)
    back = back_from_stand_in(thief, sent_to_provider(thief))
    sent_to_provider(victim)  # who has a login of their own under way
    answer = step(victim, back)
    assert answer.status_code == 400
    assert "was not started in this browser" in text_of(answer)
    assert step(victim, "/hub/home").is_redirect


def test_an_address_with_a_code_is_good_once(hub: HubStack) -> None:
    browser = Browser(hub)
    back = back_from_stand_in(browser, sent_to_provider(browser))
    assert step(browser, back).status_code == 200
    assert step(browser, back).status_code == 400
    assert step(Browser(hub), back).status_code == 400


def test_an_answer_of_another_provider_is_refused(hub: HubStack) -> None:
    browser = Browser(hub)
    back = back_from_stand_in(browser, sent_to_provider(browser))
    answer = step(browser, re.sub(r"iss=[^&]+", "iss=https%3A%2F%2Fevil.example", back))
    assert answer.status_code == 403
    assert "ended elsewhere" in text_of(answer)


def test_nobody_is_led_elsewhere(hub: HubStack) -> None:
    for wanted in (
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example",
        "javascript:alert(1)",
        "/%09/evil.example",
        "%0a//evil.example",
        "https:evil.example",
        "///evil.example",
        "/hub/..//evil.example@x",
        "http://localhost.evil.example/",
        "/hub/logout",
        "/hub/home/../%6cogout?x=1",
    ):
        browser = Browser(hub)
        back = back_from_stand_in(browser, sent_to_provider(browser, wanted))
        target = led_to(step(browser, f"{back}&next=https://evil.example/"))
        assert re.match(r"/(?![/\\])", target), (wanted, target)
        assert "ogout" not in target, "who logs in is not led out again, past the page that asks"


def test_where_the_provider_leads_back_to_is_not_the_requests_to_say(hub: HubStack) -> None:
    headers = {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https"}
    answer = Browser(hub).http.get(
        "/hub/oauth_login?redirect_uri=https://evil.example", headers=headers, follow_redirects=False
    )
    sent = query(led_to(answer))
    assert sent["redirect_uri"] == f"{hub.url}/hub/oauth_callback"
    assert sent["code_challenge_method"] == "S256"
    assert len(sent["nonce"]) > 20


def test_error_text_of_the_provider_is_escaped(hub: HubStack) -> None:
    browser = Browser(hub)
    state = query(sent_to_provider(browser))["state"]
    said = "%3Cscript%3Ealert(1)%3C/script%3E"
    answer = step(browser, f"/hub/oauth_callback?error=access_denied&error_description={said}&state={state}")
    assert answer.status_code == 403
    assert "<script>alert(1)" not in answer.text


def test_newcomers_are_told_that_the_provider_is_away_and_those_inside_stay(
    hub: HubStack, issuer: StandIn
) -> None:
    inside = Browser(hub)
    log_in(inside)
    began = Browser(hub)
    back = back_from_stand_in(began, sent_to_provider(began))
    issuer.down = True
    answer = step(began, back)
    assert answer.status_code == 503
    assert "does not answer" in text_of(answer)
    assert "Traceback" not in answer.text
    assert 'id="mlp-company-login"' in answer.text, "the way out: try again"
    assert inside.get("/hub/home").url.path == "/hub/home"
    boss = Browser(hub)
    assert boss.login("boss").url.path == "/hub/home", "an administrator gets in by password"


def test_only_administrators_log_in_by_password_and_nobody_signs_up(hub: HubStack, issuer: StandIn) -> None:
    answer = Browser(hub).login("carol")
    assert answer.status_code == 403
    assert "only administrators" in text_of(answer)
    assert "managed by" in text_of(Browser(hub).get("/hub/signup"))
    browser = Browser(hub)
    log_in(browser)
    assert "managed by" in text_of(browser.get("/hub/change-password"))
    assert step(Browser(hub), "/hub/home").is_redirect
    assert Browser(hub).login(who(hub, issuer), PASSWORD).status_code == 403


def test_a_name_of_the_hubs_own_account_is_not_taken_over(hub: HubStack, issuer: StandIn) -> None:
    issuer.person["preferred_username"] = "boss"
    log_in(Browser(hub))
    assert hub.api("GET", "/users/boss").json()["groups"] == []
    assert hub.api("GET", "/users/boss-2").json()["admin"] is False


def test_a_recent_login_is_the_providers_to_confirm(hub: HubStack, issuer: StandIn) -> None:
    issuer.auth_time = 1_000_000_000  # their session there is of long ago
    browser = Browser(hub)
    log_in(browser)
    confirm = led_to(step(browser, "/hub/token"))
    sent = led_to(step(browser, led_to(step(browser, confirm))))
    assert (query(sent)["prompt"], query(sent)["max_age"]) == ("login", "0")
    answer = step(browser, back_from_stand_in(browser, sent))
    assert answer.status_code == 403
    assert "did not ask for the password" in text_of(answer)
    issuer.auth_time = None
    sent = led_to(step(browser, led_to(step(browser, confirm))))
    wanted = led_to(step(browser, back_from_stand_in(browser, sent)))
    assert wanted == "/hub/token"
    assert step(browser, wanted).status_code == 200


def test_a_logout_here_also_logs_out_at_the_provider(hub: HubStack, issuer: StandIn) -> None:
    browser = Browser(hub)
    log_in(browser)
    out = led_to(step(browser, "/hub/logout"))
    assert out.startswith(f"{issuer.issuer}/logout?")
    assert query(out)["post_logout_redirect_uri"] == f"{hub.url}/hub/login"
    assert step(browser, "/hub/home").is_redirect


def test_keys_that_change_under_load_turn_nobody_away(hub: HubStack, issuer: StandIn) -> None:
    log_in(Browser(hub))
    browsers = [Browser(hub) for _ in range(10)]
    backs = [back_from_stand_in(browser, sent_to_provider(browser)) for browser in browsers]
    issuer.keys, issuer.signs_with = [published("after")], "after"
    try:
        for browser, back in zip(browsers, backs, strict=True):
            assert step(browser, back).status_code == 200
    finally:
        issuer.keys, issuer.signs_with = [published("after"), published("first")], "first"


def test_a_user_who_must_log_in_again_can_use_a_terminal_while_the_browser_stays_out(
    hub: HubStack, issuer: StandIn
) -> None:
    browser = Browser(hub)
    log_in(browser)
    issuer.tokens.clear()
    issuer.refuses_refresh = {"error": "invalid_grant"}
    wait_for(lambda: step(browser, "/hub/home").is_redirect)
    issuer.refuses_refresh = None
    issuer.person["groups"] = ["/ml/blue"]
    made = on_a_terminal(hub, issuer)
    assert made.status_code == 201, made.text
    assert hub.api("GET", f"/users/{who(hub, issuer)}").json()["groups"] == ["/ml/blue"]
    asked = hub.api("GET", "/user", made.json()["token"])
    assert (asked.status_code, asked.json()["name"]) == (200, who(hub, issuer))
    assert step(browser, "/hub/home").is_redirect


def test_a_stolen_login_of_a_terminal_is_worth_nothing(hub: HubStack, issuer: StandIn) -> None:
    assert "log in once in a browser" in on_a_terminal(hub, issuer).json()["message"]
    log_in(Browser(hub))
    grant, token = issuer.grant(), issuer.id_token(aud=TERMINAL, jti="stolen")
    body = {"access_token": grant["access_token"], "id_token": token, "machine": "laptop"}
    assert hub.http.post("/hub/api/mlp/device-token", json=body).status_code == 201
    assert "was used" in hub.http.post("/hub/api/mlp/device-token", json=body).json()["message"]
    browsers_own = {**body, "id_token": grant["id_token"]}  # of the hub's own client
    assert hub.http.post("/hub/api/mlp/device-token", json=browsers_own).status_code == 403
    assert hub.api("POST", f"/mlp/accounts/{who(hub, issuer)}/deauthorize").status_code == 200
    closed = on_a_terminal(hub, issuer, jti="closed")
    assert (closed.status_code, closed.json()["message"]) == (403, "this account may not log in")


def test_a_provider_outage_gets_a_readable_message(hub: HubStack, issuer: StandIn) -> None:
    browser = Browser(hub)
    back = back_from_stand_in(browser, sent_to_provider(browser))
    issuer.down = True
    for said in (text_of(step(browser, back)), on_a_terminal(hub, issuer).json()["message"]):
        assert "Stand-in does not answer. Try again in a moment" in said
        assert "503" not in said
    assert "does not answer (HTTP 503" in hub.log("hub")


def ended_there(hub: HubStack, issuer: StandIn, session: str) -> None:
    """Have the provider tell the hub that one of its sessions has ended."""
    now = int(time.time())
    events = {"events": {LOGOUT: {}}, "jti": secrets.token_hex(8), "sid": session}
    token = issuer.signed({"iss": issuer.issuer, "aud": "mlp-hub", "iat": now, "exp": now + 60, **events})
    assert hub.http.post("/hub/api/mlp/backchannel-logout", data={"logout_token": token}).status_code == 200


def test_of_several_browsers_the_one_whose_session_ended_is_out(hub: HubStack, issuer: StandIn) -> None:
    browsers = {}
    for session in ("first", "second", "third"):
        issuer.claims = {"sid": f"{who(hub, issuer)}-{session}"}
        log_in(browsers.setdefault(session, Browser(hub)))

    def out() -> list[str]:
        return [name for name, browser in browsers.items() if step(browser, "/hub/home").is_redirect]

    ended_there(hub, issuer, f"{who(hub, issuer)}-fourth")
    assert out() == []
    ended_there(hub, issuer, f"{who(hub, issuer)}-first")
    assert out() == ["first"]
    leaves = led_to(step(browsers["second"], "/hub/logout"))
    hint = jwt.decode(query(leaves)["id_token_hint"], options={"verify_signature": False})
    assert hint["sid"].endswith("-second"), "not the session of the third"
    assert out() == ["first", "second"]
    assert "id_token_hint" in led_to(step(browsers["third"], "/hub/logout"))

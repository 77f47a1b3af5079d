"""A login that a browser began is finished by that browser, once, and soon."""

from __future__ import annotations

import json
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import pytest

from mlp_hub.hub_integration.providers.records import login_states
from mlp_hub.hub_integration.providers.records.login_states import States
from mlp_hub.settings.origins import Origins

ISSUER = "https://sso.example.org"
BACK = "http://localhost:8000/hub/oauth_callback"


class Browser:
    """A handler that keeps cookies as a browser does. What signs them is tornado's, so here they only are."""

    def __init__(self) -> None:
        self.hub = SimpleNamespace(base_url="/hub/")
        self.cookies: dict[str, str] = {}
        self.paths: set[str] = set()

    def _set_cookie(self, name: str, value: str, *, path: str, max_age: int) -> None:
        assert max_age <= 3600
        self.paths.add(path)
        self.cookies[name] = value

    def get_secure_cookie(self, name: str, *, max_age_days: float) -> bytes | None:
        assert max_age_days < 1
        return self.cookies[name].encode() if name in self.cookies else None

    def clear_cookie(self, name: str, **_: Any) -> None:
        self.cookies.pop(name, None)


@pytest.fixture
def kept() -> States:
    return States(Origins("http://localhost:8000", "localhost"))


def test_the_browser_that_began_a_login_finishes_it_and_only_once(kept: States) -> None:
    browser = Browser()
    begun = kept.begin(browser, ISSUER, BACK, "/hub/token", confirms="ann")
    copied = dict(browser.cookies)
    assert kept.take_pending(browser, begun.state) == begun
    assert browser.cookies == {}
    browser.cookies = copied
    assert kept.take_pending(browser, begun.state) is None, "somebody kept the cookie"


def test_another_browser_cannot_finish_it(kept: States) -> None:
    mine, theirs = Browser(), Browser()
    begun = kept.begin(mine, ISSUER, BACK, "")
    kept.begin(theirs, ISSUER, BACK, "")
    assert kept.take_pending(theirs, begun.state) is None
    assert kept.take_pending(mine, begun.state) == begun


@pytest.mark.parametrize("state", ["", "x", "é" * 50, "0" * 32])
def test_a_state_that_was_never_given_is_nobodys(kept: States, state: str) -> None:
    browser = Browser()
    kept.begin(browser, ISSUER, BACK, "")
    assert kept.take_pending(browser, state) is None


def test_a_login_ends_after_a_while(kept: States, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = Browser()
    begun = kept.begin(browser, ISSUER, BACK, "")
    monkeypatch.setattr(login_states.time, "time", lambda: begun.at + login_states.KEPT_S + 1)
    assert kept.take_pending(browser, begun.state) is None


def test_tabs_are_apart_and_thousands_of_them_fill_no_browser(kept: States) -> None:
    browser = Browser()
    for _ in range(1000):
        kept.begin(browser, ISSUER, BACK, "/hub/" + "x" * 990)
    assert len(browser.cookies) <= 4
    assert sum(len(value) for value in browser.cookies.values()) < 6000
    assert all(name.startswith("__Host-mlp-login-") for name in browser.cookies)
    assert browser.paths == {"/"}


def test_without_names_apart_the_cookie_is_for_the_hub_alone() -> None:
    browser = Browser()
    begun = States(Origins("http://hub.lan", "")).begin(browser, ISSUER, BACK, "")
    assert browser.paths == {"/hub/"}
    (value,) = browser.cookies.values()
    assert json.loads(value) == asdict(begun)


def test_no_two_logins_share_anything(kept: States) -> None:
    made = [kept.begin(Browser(), ISSUER, BACK, "") for _ in range(50)]
    for part in ("state", "nonce", "verifier"):
        assert len({getattr(one, part) for one in made}) == 50
    assert min(len(one.verifier) for one in made) >= 43

"""What tests do in a browser without scripts to log in with the company's account."""

from __future__ import annotations

import html
import re
from urllib.parse import parse_qs, urlsplit

import httpx

from support.hubs.hub_stack import Browser

CALLBACK = "/hub/oauth_callback"


def step(browser: Browser, url: str) -> httpx.Response:
    """Ask for a page and follow nothing."""
    return browser.http.get(url, follow_redirects=False)


def led_to(answer: httpx.Response) -> str:
    """Return where a redirect leads, or a page that leads on by itself."""
    if "Refresh" in answer.headers:
        return answer.headers["Refresh"].partition("url=")[2]
    assert answer.is_redirect, f"{answer.status_code} {answer.text[:2000]}"
    return answer.headers["Location"]


def query(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def sent_to_provider(browser: Browser, wanted: str = "/hub/home") -> str:
    """Press the button, and return where that leads."""
    return led_to(step(browser, f"/hub/oauth_login?next={wanted}"))


def back_from_stand_in(browser: Browser, url: str) -> str:
    """Log in at the stand-in, which asks nothing, and return where it leads back to."""
    return led_to(step(browser, url))


def log_in(browser: Browser, wanted: str = "/hub/home") -> httpx.Response:
    """Log in with the stand-in, and return the page that was wanted."""
    back = back_from_stand_in(browser, sent_to_provider(browser, wanted))
    assert urlsplit(back).path == CALLBACK
    return browser.get(led_to(step(browser, back)))


def enter_at_keycloak(browser: Browser, url: str, name: str, password: str) -> httpx.Response:
    """Fill in Keycloak's form, and return its answer: a redirect back, or the form again."""
    page = browser.get(url)
    found = re.search(r'<form[^>]*id="kc-form-login"[^>]*action="([^"]+)"', page.text)
    assert found, page.text[:3000]
    return browser.http.post(
        html.unescape(found[1]), data={"username": name, "password": password}, follow_redirects=False
    )

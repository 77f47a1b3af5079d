"""A whole hub behind a real nginx, below a path: what pages of other origins, planted cookies and forged addresses achieve."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from support.certificates import certificate
from support.hubs.hub_stack import Browser
from support.hubs.live_hub import LiveHub, live_hub
from support.local_names import NamesOverTls
from support.ports import free_port
from support.proxy.gateways import gateway
from support.waiting import wait_for

HOST, USERS = "hub.example.org", "hub-users.example.net"
CONFIG = """
c.NativeAccounts.login_burst = c.NativeAccounts.signup_burst = 3
c.NativeAccounts.login_every_s = c.NativeAccounts.signup_every_s = 100_000
"""


class FrontedHub:
    """The hub, and how browsers reach it through nginx."""

    def __init__(self, hub: LiveHub, pem: Path) -> None:
        self.hub, self.pem = hub, pem

    def browser(self, sender: str | None = None, address: str = "127.0.0.1") -> Browser:
        """A browser at one of this machine's addresses."""
        return Browser(self.hub, NamesOverTls(self.pem, address, sender))

    def logged_in(self, name: str) -> Browser:
        browser = self.browser(f"127.0.1.{ord(name[0])}")
        assert browser.login(name, next_url="/ml/services/mlp/").is_success
        assert browser.get("/services/mlp/api/v1/session").json()["username"] == name
        return browser

    @contextlib.contextmanager
    def socket(self, url: str, browser: Browser, origin: str) -> Iterator[ClientConnection]:
        """Open a WebSocket as a page of an origin does, with the cookies that this browser has for the address."""
        jar = httpx.Request("GET", url.replace("wss:", "https:"))
        browser.http.cookies.set_cookie_header(jar)
        with connect(
            url,
            ssl=ssl.create_default_context(cafile=str(self.pem)),
            address=("127.0.0.1", urlsplit(url).port),
            additional_headers={"Cookie": jar.headers["Cookie"], "Origin": origin},
            proxy=None,
        ) as link:
            yield link


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FrontedHub]:
    directory = tmp_path_factory.mktemp("fronted")
    pem, port = certificate(directory, HOST, f"*.{USERS}"), free_port()
    (directory / "config.py").write_text(CONFIG)
    environ = {
        "MLP_PUBLIC_URL": f"https://{HOST}:{port}/",
        "MLP_USERS_DOMAIN": USERS,
        "MLP_TRUSTED_PROXIES": "127.0.0.1, ::1",
        "MLP_BASE_PATH": "/ml/",
        "MLP_CONFIG": str(directory / "config.py"),
    }
    with (
        live_hub(directory / "home", **environ) as hub,
        gateway("nginx", directory / "front", pem, hub.port, port),
    ):
        for name in ("ann", "bob"):
            hub.add_user(name)
        yield FrontedHub(hub, pem)


@pytest.fixture(scope="module")
def ann(site: FrontedHub) -> Browser:
    """Ann's browser, logged in to the hub, to the platform's pages and to her server."""
    hub, browser = site.hub, site.logged_in("ann")
    headers = {"Authorization": f"Bearer {hub.token('ann')}"}
    assert hub.http.post("/hub/api/users/ann/server", headers=headers).status_code in (201, 202)
    wait_for(
        lambda: hub.http.get("/hub/api/users/ann", headers=headers).json()["servers"][""]["ready"],
        message="for ann's server",
    )
    page = browser.get(f"{hub.notebooks('ann')}/user/ann/lab")
    assert (page.status_code, page.url.host) == (200, f"ann.{USERS}")
    hub.submit("ann", "long", "import time; time.sleep(3600)", cpu=0.1, ram=100)
    return browser


def origins(hub: LiveHub, own: str) -> dict[str, str]:
    port = urlsplit(hub.url).port
    found = {
        "another site": "https://evil.example",
        "another port": f"https://{HOST}:{port + 1 if port else 1}",
        "a name below": f"https://x.{HOST}:{port}",
        "a name that begins so": f"https://{HOST}.evil.example:{port}",
        "the platform": f"https://{HOST}:{port}",
        "ann": f"https://ann.{USERS}:{port}",
        "bob": f"https://bob.{USERS}:{port}",
        "none": "null",
    }
    return {who: origin for who, origin in found.items() if who != own}


@pytest.mark.parametrize("own", ["the platform", "ann"])
def test_a_websocket_opens_only_from_pages_of_the_same_origin(
    site: FrontedHub, ann: Browser, own: str
) -> None:
    hub = site.hub
    mine = {"the platform": f"{hub.url}/services/mlp", "ann": f"{hub.notebooks('ann')}/user/ann/mlp"}[own]
    url = f"{mine.replace('https:', 'wss:')}/api/v1/users/ann/jobs/long:stream"
    for who, origin in origins(hub, own).items():
        with pytest.raises(InvalidStatus) as refused, site.socket(url, ann, origin):
            pass
        assert refused.value.response.status_code == 403, who
    with site.socket(url, ann, f"https://{urlsplit(mine).netloc}") as link:
        assert '"job"' in str(link.recv(timeout=None))


def test_cookies_that_another_page_of_the_name_has_planted_make_nobody_another(
    site: FrontedHub, ann: Browser
) -> None:
    """Another site's page below the same name plants what is valid for bob, under every name without the prefix."""
    bob = site.logged_in("bob")
    own = {c.name: c.value or "" for c in ann.http.cookies.jar if c.domain.startswith(HOST)}
    theirs = {c.name: c.value or "" for c in bob.http.cookies.jar if c.domain.startswith(HOST)}
    kept = {name for name in theirs if name.startswith("__Host-")}
    assert kept >= {f"__Host-mlp-session-{site.hub.port}", "__Host-jupyterhub-hub-login"}
    planted = {name.removeprefix("__Host-"): theirs[name] for name in kept} | {"_xsrf": theirs["_xsrf"]}
    before = "; ".join(f"{n}={v}" for n, v in planted.items())  # those of the longer path come first
    names = NamesOverTls(site.pem)
    with httpx.Client(base_url=site.hub.url, transport=names, timeout=ann.http.timeout) as http:
        for jar in (before, f"{before}; " + "; ".join(f"{n}={v}" for n, v in own.items())):
            headers = {"Cookie": jar, "Accept": "text/html", "Sec-Fetch-Mode": "navigate"}
            session = http.get("/services/mlp/api/v1/session", headers=headers)
            home = http.get("/hub/home", headers=headers)
            if jar is before:
                assert session.status_code == 401
                assert home.is_redirect
            else:
                assert session.json()["username"] == "ann"
                assert "ann" in home.text
                assert "bob" not in home.text


def attempts(browser: Browser, send: Callable[[Browser, int], httpx.Response]) -> list[int]:
    return [send(browser, n).status_code for n in range(5)]


def wrong_password(browser: Browser, n: int) -> httpx.Response:
    return browser.login(f"nobody{n}", "wrong password")


def signed_up(browser: Browser, n: int) -> httpx.Response:
    return browser.sign_up(f"new-{id(browser)}-{n}")


@pytest.mark.parametrize("send", [wrong_password, signed_up])
def test_too_many_attempts_are_stopped_whatever_address_the_client_forges_and_nobody_else_is(
    site: FrontedHub, send: Callable[[Browser, int], httpx.Response]
) -> None:
    flood = site.browser("127.0.0.7")

    def forged(browser: Browser, n: int) -> httpx.Response:
        address = f"203.0.113.{n}"
        browser.http.headers.update(
            {"X-Forwarded-For": f"{address}, 127.0.0.1", "X-Real-IP": address, "Forwarded": f"for={address}"}
        )
        return send(browser, n)

    assert [status == 429 for status in attempts(flood, forged)] == [False] * 3 + [True] * 2
    # whose address it wrote is not stopped for it, nor a neighbour, nor who comes by IPv6
    for sender, address in (("127.0.0.8", "127.0.0.1"), (None, "::1")):
        browser = site.browser(sender, address)
        if sender:
            browser.http.headers["X-Forwarded-For"] = "127.0.0.7"
        assert send(browser, 0).status_code != 429, (sender, address)
    assert attempts(site.browser(address="::1"), send)[-1] == 429


def test_a_client_that_bypasses_nginx_cannot_choose_its_address_either(site: FrontedHub) -> None:
    """From an address that no proxy was named at, on the hub's own port; from the loopback alone here."""
    hub = site.hub
    transport = httpx.HTTPTransport(local_address="127.0.0.66")
    body = {"username": "nobody", "password": "wrong password"}
    with httpx.Client(base_url=hub.http.base_url, transport=transport, timeout=hub.http.timeout) as http:
        found = []
        for n in range(5):
            page = http.get("/hub/login")
            xsrf = page.cookies.get("_xsrf") or http.cookies["_xsrf"]
            headers = {
                "X-Forwarded-For": f"203.0.113.{n}",
                "Cookie": f"_xsrf={xsrf}",
                "Sec-Fetch-Mode": "navigate",
            }
            found.append(http.post("/hub/login", data={"_xsrf": xsrf, **body}, headers=headers).status_code)
    assert [status == 429 for status in found] == [False] * 3 + [True] * 2, found

"""The main job over TLS, each user's servers below a name of their own: behind nginx, and by the hub's own certificate below a path."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, WebSocket, expect

from support.certificates import certificate
from support.cluster.installs import Install
from support.front.browser import chromium, log_in, look_at, new_context, open_lab, run_cell, shot, sign_up
from support.hubs.live_hub import LiveHub, set_epochs
from support.local_names import NamesOverTls
from support.ports import free_port
from support.proxy.gateways import gateway
from support.waiting import PATIENCE_S, wait_for

HOST, USERS = "hub.example.org", "hub-users.example.net"
SAMPLE = "01-digits-mpi.ipynb"


@dataclass
class Site:
    """A hub that browsers reach over TLS at one address of this machine."""

    kind: str
    hub: LiveHub
    address: str
    pem: Path
    sockets: list[WebSocket] = field(default_factory=list)

    @property
    def flag(self) -> str:
        """What Chromium is told instead of DNS."""
        return f"--host-resolver-rules=MAP {HOST} {self.address}, MAP *.{USERS} {self.address}"

    def opened(self, socket: WebSocket) -> None:
        """Note down a WebSocket that ann's page has opened."""
        self.sockets.append(socket)

    def program(self, token: str, path: str) -> httpx.Response:
        """Ask as a program does, which is sure of whom it speaks to."""
        names = NamesOverTls(self.pem, self.address.strip("[]"))
        with httpx.Client(transport=names, timeout=PATIENCE_S) as http:
            return http.get(f"{self.hub.url}{path}", headers={"Authorization": f"Bearer {token}"})


@contextlib.contextmanager
def behind_nginx(install: Install, directory: Path) -> Iterator[Site]:
    port, pem = free_port(), certificate(directory, HOST, f"*.{USERS}")
    environ = {
        "MLP_PUBLIC_URL": f"https://{HOST}:{port}/",
        "MLP_USERS_DOMAIN": USERS,
        "MLP_TRUSTED_PROXIES": "127.0.0.1",
    }
    with (
        install.hub(directory / "home", **environ) as hub,
        gateway("nginx", directory / "front", pem, hub.port, port),
    ):
        yield Site("nginx", hub, "127.0.0.1", pem)


@contextlib.contextmanager
def own_certificate(install: Install, directory: Path) -> Iterator[Site]:
    """Browsers come by IPv6, all is below a path."""
    pem, port = certificate(directory, HOST, f"*.{USERS}", "127.0.0.1"), free_port()
    environ = {
        "MLP_BIND": "::",
        "MLP_TLS_CERT": str(pem),
        "MLP_PUBLIC_URL": f"https://{HOST}:{port}/",
        "MLP_USERS_DOMAIN": USERS,
        "MLP_BASE_PATH": "/ml/",
        "MLP_PORT": str(port),
    }
    with install.hub(directory / "home", **environ) as hub:
        yield Site("own", hub, "[::1]", pem)


@pytest.mark.parametrize("way", [behind_nginx, pytest.param(own_certificate, marks=pytest.mark.whole)])
def test_from_the_sign_up_to_the_log_out(install: Install, tmp_path: Path, way) -> None:
    with way(install, tmp_path) as site, chromium(site.flag) as browser:
        people = {name: new_context(browser, ignore_https_errors=True) for name in ("ann", "admin")}
        ann, admin = (context.new_page() for context in people.values())
        ann.on("websocket", site.opened)
        hub = site.hub
        sign_up(ann, hub, "ann")
        log_in(admin, hub, "admin", hub.admin_password)
        admin.goto(f"{hub.url}/services/mlp/admin/users")
        admin.get_by_role("button", name="Approve ann").click()
        expect(admin.get_by_role("button", name="Approve ann")).to_have_count(0)
        shot(admin, f"tls-{site.kind}-1-users")
        log_in(ann, hub, "ann")
        _run_the_sample(site, ann)
        _each_name_has_its_own(site, ann)
        _make_a_token(site, ann)
        _log_out(site, ann)


def _run_the_sample(site: Site, page: Page) -> None:
    """Run it from a cell, and see it live there and in the panel."""
    hub = site.hub
    open_lab(page, hub, "ann", SAMPLE, before=lambda: set_epochs(hub, "ann", SAMPLE, 5))
    run_cell(page, "%%mlp submit")
    monitor = page.locator(".mlp-monitor").last
    expect(monitor).to_have_attribute("data-phase", "finished", timeout=900_000)
    assert hub.job("ann", "digits")["progress"] == 100
    expect(monitor.get_by_role("group", name="Curves")).to_contain_text("accuracy")
    look_at(monitor)
    shot(page, f"tls-{site.kind}-2-lab")
    theirs = hub.notebooks("ann").replace("https://", "wss://")
    kernel, live = (
        {ws.url for ws in site.sockets if f"{theirs}/user/ann/{part}" in ws.url}
        for part in ("api/kernels/", "mlp/")
    )
    assert kernel, [ws.url for ws in site.sockets]
    assert live, [ws.url for ws in site.sockets]
    page.goto(f"{hub.url}/services/mlp/jobs/ann/digits")
    expect(page.locator(".mlp-monitor")).to_have_attribute("data-phase", "finished")
    expect(page.get_by_role("group", name="Curves")).to_contain_text("accuracy")
    shot(page, f"tls-{site.kind}-3-panel")
    platform = hub.url.replace("https://", "wss://")
    assert any(ws.url.startswith(f"{platform}/services/mlp/api/v1/") for ws in site.sockets)


def _each_name_has_its_own(site: Site, page: Page) -> None:
    hub, context = site.hub, page.context
    platform, theirs = hub.url, hub.notebooks("ann")
    of = {
        name: {c["name"]: c for c in context.cookies(f"{name}/{path}")}
        for name, path in ((platform, "hub/"), (theirs, "user/ann/"))
    }
    plain = {n.removeprefix("__Host-") for n in of[platform]}
    assert plain >= {"jupyterhub-session-id", "jupyterhub-hub-login", f"mlp-session-{hub.inner_port}"}
    for cookies in of.values():
        assert all(n.startswith("__Host-") or n == "_xsrf" for n in cookies), cookies
        assert all(c["secure"] for n, c in cookies.items() if n != "_xsrf")
    assert not (of[platform].keys() & of[theirs].keys()) - {"_xsrf"}
    # the platform's pages are not on a user's name
    refused = page.goto(f"{theirs}/hub/home")
    assert refused is not None
    assert refused.status == 421


def _make_a_token(site: Site, page: Page) -> None:
    page.goto(f"{site.hub.url}/hub/token")
    page.wait_for_function(
        "() => window._jupyterhub_page_loaded"
    )  # before it the button only loads the page anew
    page.get_by_label("Purpose").fill("a program")
    page.get_by_role("button", name="Request new API token").click()
    expect(page.locator("#token-result")).not_to_be_empty()
    shot(page, f"tls-{site.kind}-4-token")
    token = page.locator("#token-result").inner_text().strip()
    answer = site.program(token, "/services/mlp/api/v1/session")
    assert (answer.status_code, answer.json()["username"]) == (200, "ann"), answer.text


def _log_out(site: Site, page: Page) -> None:
    page.goto(f"{site.hub.url}/services/mlp/")
    page.get_by_role("button", name="Log out").click()
    expect(page.locator("#login-main")).to_be_visible()
    page.goto(f"{site.hub.url}/services/mlp/")
    expect(page.locator("#username_input")).to_be_visible()
    assert page.url.startswith(f"{site.hub.url}/hub/login")
    theirs = f"{site.hub.notebooks('ann')}/user/ann/lab"

    def shut_out() -> bool:
        """Her server believes what it knows of a login for some seconds."""
        page.goto(theirs, wait_until="commit")
        at = page.url
        page.goto("about:blank")  # Lab itself, which is much to load, is nothing that this waits for
        return at.startswith(f"{site.hub.url}/hub/login")

    wait_for(shut_out, every=1, message="for the notebook server to ask for a login")

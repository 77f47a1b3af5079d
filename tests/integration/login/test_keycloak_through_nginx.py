"""The company's account in a real browser: Keycloak, a hub behind nginx with TLS, each user's servers below a name of their own."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from support.certificates import certificate
from support.front.browser import chromium, look_at, new_context, open_lab, run_cell, shot
from support.hubs.live_hub import LiveHub, live_hub, set_epochs
from support.login.keycloak import PASSWORD, Keycloak
from support.ports import free_port
from support.proxy.gateways import gateway
from support.waiting import wait_for

HOST, USERS = "hub.example.org", "hub-users.example.net"
SAMPLE = "01-digits-mpi.ipynb"
PATIENT_MS = 900_000.0


def enter(page: Page, name: str) -> None:
    """Fill in Keycloak's own form."""
    page.locator("#username").fill(name)
    page.locator("#password").fill(PASSWORD)
    page.locator("#kc-login").click()


@pytest.mark.whole
def test_from_the_login_over_a_job_to_the_removal_from_the_group(keycloak: Keycloak, tmp_path: Path) -> None:
    port, pem = free_port(), certificate(tmp_path, HOST, f"*.{USERS}")
    url = f"https://{HOST}:{port}/ml"
    with contextlib.ExitStack() as opened:
        # Keycloak itself leads nowhere else than to these two addresses
        realm = keycloak.realm(f"{url}/hub/oauth_callback", f"{url}/hub/login")
        opened.callback(realm.delete)
        realm.add_user("ann", "/ml/red")
        environ = realm.environ(
            MLP_PUBLIC_URL=f"https://{HOST}:{port}/",
            MLP_USERS_DOMAIN=USERS,
            MLP_TRUSTED_PROXIES="127.0.0.1",
            MLP_BASE_PATH="/ml/",
            MLP_LOGIN_TENANTS="/ml/{tenant} -> {tenant}",
            MLP_LOGIN_NEW_TENANTS="make",
            MLP_LOGIN_TENANT_QUOTA="cpu=4,ram=8192",
            MLP_LOGIN_REFRESH_S="2",
        )
        hub = opened.enter_context(live_hub(tmp_path / "home", **environ))
        assert hub.url == url
        opened.enter_context(gateway("nginx", tmp_path / "front", pem, hub.port, port))
        names = f"--host-resolver-rules=MAP {HOST} 127.0.0.1, MAP *.{USERS} 127.0.0.1"
        browser = opened.enter_context(chromium(names))
        page = new_context(browser, ignore_https_errors=True).new_page()
        page.goto(f"{url}/hub/login")
        page.locator("#mlp-company-login").click()
        enter(page, "ann")
        # past the page that leads on by itself, which would cut off what is asked on it
        page.wait_for_url(lambda at: at.startswith(url) and "/oauth_callback" not in at)
        _cookies_are_guarded(hub, page)
        _run_the_sample(hub, page)
        servers = page.context.cookies(f"{hub.notebooks('ann')}/user/ann/")
        assert servers
        assert all(c["secure"] for c in servers), servers
        realm.leave("ann", "/ml/red")
        wait_for(lambda: _left(hub), message="for the tenant to have no member")
        wait_for(lambda: not hub.ok("GET", "/users/ann")["servers"], message="for the server in red to end")
        open_lab(page, hub, "ann")  # in the tenant that everybody is in
        page.goto(f"{hub.notebooks('ann')}/user/ann/lab/tree/{SAMPLE}")
        run_cell(page, "%%mlp submit")
        expect(page.locator(".jp-OutputArea-output").filter(has_text="red").last).to_be_visible()
        expect(page.locator(".mlp-monitor")).to_have_count(0)
        shot(page, "keycloak-2-refused")
        (job,) = hub.ok("GET", "/users/ann/jobs", "admin")
        assert (job["name"], job["run"]) == ("digits", 1)
        _log_out(hub, page)


def _cookies_are_guarded(hub: LiveHub, page: Page) -> None:
    found = {c["name"]: c for c in page.context.cookies(f"{hub.url}/hub/")}
    assert "__Host-jupyterhub-hub-login" in found
    assert all(name.startswith("__Host-") or name == "_xsrf" for name in found), found
    assert all(c["secure"] for name, c in found.items() if name != "_xsrf")


def _run_the_sample(hub: LiveHub, page: Page) -> None:
    def for_red() -> None:
        set_epochs(hub, "ann", SAMPLE, 5)
        path, magic = hub.homes / "ann" / SAMPLE, "%%mlp submit --runtime mpi"
        text = path.read_text()
        assert magic in text
        path.write_text(text.replace(magic, f"{magic} --tenant red"))

    open_lab(page, hub, "ann", SAMPLE, before=for_red)
    run_cell(page, "%%mlp submit")
    monitor = page.locator(".mlp-monitor").last
    expect(monitor).to_have_attribute("data-phase", "finished", timeout=PATIENT_MS)
    assert hub.job("ann", "digits")["tenant"] == "red"
    look_at(monitor)
    shot(page, "keycloak-1-finished")


def _left(hub: LiveHub) -> bool:
    return not any(m["user"] == "ann" for m in hub.ok("GET", "/tenants/red/members"))


def _log_out(hub: LiveHub, page: Page) -> None:
    page.goto(f"{hub.url}/hub/logout")
    page.wait_for_url(f"{hub.url}/hub/login**")
    page.locator("#mlp-company-login").click()
    expect(page.locator("#kc-login")).to_be_visible()  # the password is asked for again

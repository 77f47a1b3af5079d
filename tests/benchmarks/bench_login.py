"""Logging in with Keycloak beside JupyterHub alone with oauthenticator, and how soon who is taken out there is out here."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import psutil

from bench_common import Context, Figure, Stopwatch, bare_hub, median_of, quantile
from support.hubs.hub_stack import Browser
from support.hubs.live_hub import LiveHub
from support.login.company_login import enter_at_keycloak, led_to, sent_to_provider, step
from support.login.keycloak import PASSWORD, Realm, own_keycloak
from support.waiting import wait_for

NAME = "login"
ABOUT = (
    "one Keycloak; a browser without cookies presses the button, fills in Keycloak's form and is led back to the hub's page, "
    "one login after another, of one person; then a person is taken out of a group, or disabled, while requests of theirs come "
    "each 0.2 s, or none, with `login_refresh_s` as it comes"
)
RUNS = int(os.environ.get("BENCH_RUNS", "20"))
COMMAND = "make bench ONLY=login"
_PLAIN = """
c.JupyterHub.authenticator_class = "generic-oauth"
c.GenericOAuthenticator.client_id = "{client}"
c.GenericOAuthenticator.client_secret = "{secret}"
c.GenericOAuthenticator.oauth_callback_url = "http://localhost:{{port}}/hub/oauth_callback"
c.GenericOAuthenticator.authorize_url = "{issuer}/protocol/openid-connect/auth"
c.GenericOAuthenticator.token_url = "{issuer}/protocol/openid-connect/token"
c.GenericOAuthenticator.userdata_url = "{issuer}/protocol/openid-connect/userinfo"
c.GenericOAuthenticator.scope = ["openid", "profile", "email"]
c.GenericOAuthenticator.username_claim = "preferred_username"
c.GenericOAuthenticator.manage_groups = True
c.GenericOAuthenticator.auth_state_groups_key = "oauth_user.groups"
c.GenericOAuthenticator.enable_auth_state = True
c.GenericOAuthenticator.enable_pkce = True
c.CryptKeeper.keys = ["{key}"]
"""


def run(context: Context) -> list[Figure]:
    with own_keycloak(context.tmp / "keycloak") as (keycloak, _):
        realm = keycloak.realm("*")
        realm.add_user("ann", "/ml/red")
        with _hub(realm) as hub:
            ours = _round_trips(hub, hub.pid("hub"))
            removals = _removals(hub, realm)
        return [*_beside(ours, _plain(context, realm)), *removals]


@contextlib.contextmanager
def _hub(realm: Realm) -> Iterator[LiveHub]:
    rules = {
        "MLP_LOGIN_TENANTS": "/ml/{tenant} -> {tenant}",
        "MLP_LOGIN_NEW_TENANTS": "make",
        "MLP_LOGIN_TENANT_QUOTA": "cpu=2,ram=4096",
    }
    hub = LiveHub(Path(tempfile.mkdtemp(prefix="mlp-login-")), **realm.environ(**rules))
    try:
        hub.up()
        yield hub
    finally:
        hub.destroy()
        shutil.rmtree(hub.home, ignore_errors=True)


# ------------------------------------------------------------------- the round trip


def _round_trips(hub: Any, pid: int) -> dict[str, list[float]]:
    """Log in again and again; milliseconds of the whole, of Keycloak's part, and of the hub's processor in each."""
    took: dict[str, list[float]] = {"all": [], "there": [], "cpu": []}
    process = psutil.Process(pid)
    for _ in range(RUNS + 1):
        before, watch = sum(process.cpu_times()[:2]), Stopwatch()
        browser = Browser(hub)
        url = sent_to_provider(browser)
        there = Stopwatch()
        back = led_to(enter_at_keycloak(browser, url, "ann", PASSWORD))
        took["there"].append(there.seconds * 1000)
        page = browser.get(led_to(step(browser, back)))
        took["all"].append(watch.seconds * 1000)
        took["cpu"].append((sum(process.cpu_times()[:2]) - before) * 1000)
        assert page.url.path == "/hub/home", page.text[:2000]
        browser.http.close()
    return {name: values[1:] for name, values in took.items()}  # the first one makes the account


def _plain(context: Context, realm: Realm) -> dict[str, list[float]] | None:
    if importlib.util.find_spec("oauthenticator") is None:
        return None
    directory = context.tmp / "plain-login"
    directory.mkdir()
    more = _PLAIN.format(
        client=realm.client_id, secret=realm.client_secret, issuer=realm.issuer, key="0" * 64
    )
    with bare_hub(directory, more) as (url, pid):
        hub = SimpleNamespace(url=url.replace("127.0.0.1", "localhost"), clients=[])
        wait_for(lambda: _is_up(url))
        return _round_trips(hub, pid)


def _is_up(url: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(f"{url}/hub/login", trust_env=False).status_code == 200
    return False


def _beside(ours: dict[str, list[float]], plain: dict[str, list[float]] | None) -> list[Figure]:
    def figure(name: str, what: str, note: str) -> Figure:
        anchor = None if plain is None else median_of(plain[what])
        other = "JupyterHub with GenericOAuthenticator" if plain else "wants oauthenticator installed"
        return Figure(name, median_of(ours[what]), "ms, p50", anchor, other, note, COMMAND)

    note = f"p95 {quantile(ours['all'], 0.95):.0f} ms; with Keycloak's form and its look at the password"
    if plain is not None:
        note += f"; p95 alone {quantile(plain['all'], 0.95):.0f} ms"
    return [
        figure("login: round trip with Keycloak", "all", note),
        figure("login: of it at Keycloak", "there", "form and password, which are not ours"),
        figure(
            "login: processor of the hub", "cpu", "ID token checked, groups read, account and login written"
        ),
    ]


# ------------------------------------------------------------- who is taken out there


def _removals(hub: LiveHub, realm: Realm) -> list[Figure]:
    told = "login_refresh_s 30 s, as it comes; target 60 s"
    cases: list[tuple[str, str, Callable[[LiveHub, str], bool], Callable[[str], None]]] = [
        ("login: out of the group to the last job taken", "bea", _submits, _leave(realm)),
        ("login: the same without a request of theirs", "carl", _is_member, _leave(realm)),
        ("login: disabled to the last token taken", "dora", _is_known, realm.disable),
    ]
    for _, user, is_in, _ in cases:
        realm.add_user(user, "/ml/red")
        browser = Browser(hub)  # type: ignore[arg-type]  # it needs no more of a hub than its address
        back = led_to(enter_at_keycloak(browser, sent_to_provider(browser), user, PASSWORD))
        browser.get(led_to(step(browser, back)))
        hub.token(user)
        hub.call("GET", "/auth", user)  # by which the service learns of the groups
        wait_for(lambda user=user: _is_member(hub, user))
        assert is_in(hub, user)
    last = dict.fromkeys((user for _, user, _, _ in cases), 0.0)
    watches = {}
    for _, user, _, remove in cases:
        remove(user)
        watches[user] = Stopwatch()
    inside = {user: is_in for _, user, is_in, _ in cases}
    while inside:
        for user, is_in in list(inside.items()):
            if is_in(hub, user):
                last[user] = watches[user].seconds
            else:
                del inside[user]
        assert max(last.values()) < 300
        time.sleep(0.2)
    return [Figure(name, last[user], "s", note=told, command=COMMAND) for name, user, _, _ in cases]


def _leave(realm: Realm) -> Callable[[str], None]:
    return lambda user: realm.leave(user, "/ml/red")


def _submits(hub: LiveHub, user: str) -> bool:
    name = f"job-{time.time_ns()}"
    job = {"name": name, "tenant": "red", "code": "pass", "cpu": 0.1, "ram": 100}
    taken = hub.call("POST", f"/users/{user}/jobs", user, job).status_code == 201
    if taken:
        hub.call("PUT", f"/users/{user}/jobs/{name}:cancel", user)
    return taken


def _is_member(hub: LiveHub, user: str) -> bool:
    if "red" not in {tenant["name"] for tenant in hub.ok("GET", "/tenants")}:
        return False
    return user in {member["user"] for member in hub.ok("GET", "/tenants/red/members")}


def _is_known(hub: LiveHub, user: str) -> bool:
    return hub.call("GET", "/auth", user).status_code == 200

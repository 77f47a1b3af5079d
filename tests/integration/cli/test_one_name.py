"""All pages on one host name, as an operator may choose: it works, everybody responsible is told, and it is undone by `up`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import httpx
import pytest

from mlp_hub.cli.doctor import machine
from mlp_hub.cli.doctor.checks import Check
from mlp_hub.settings import Settings
from support.hubs.live_hub import PASSWORD, LiveHub, live_hub
from support.local_names import LocalNames
from support.waiting import PATIENCE_S


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    with live_hub(tmp_path_factory.mktemp("hub") / "home", MLP_USERS_DOMAIN="none") as hub:
        hub.add_user("ann")
        yield hub


def names(hub: LiveHub) -> Check:
    """Return what the doctor's check of names comes to, without all its other checks."""
    return machine.names(Settings.load(hub.env))


def logged_in(url: str) -> httpx.Client:
    """A browser in which ann has logged in."""
    client = httpx.Client(base_url=url, transport=LocalNames(), follow_redirects=True, timeout=PATIENCE_S)
    client.headers.update({"Accept": "text/html", "Sec-Fetch-Mode": "navigate"})
    client.get("/hub/login")
    (xsrf,) = [c.value for c in client.cookies.jar if c.name == "_xsrf"]
    form = {"_xsrf": xsrf, "username": "ann", "password": PASSWORD}
    answer = client.post("/hub/login?next=/services/mlp/", data=form)
    assert str(answer.url) == f"{url}/services/mlp/", answer.url
    return client


def test_it_works_and_whoever_has_to_know_is_told(hub: LiveHub) -> None:
    one = f"http://127.0.0.1:{hub.port}"
    text = hub.up()
    assert f"{one}/" in text
    assert "all pages are on one host name" in text
    told = names(hub)
    assert (told.status, "MLP_USERS_DOMAIN" in told.remedy) == ("warn", True)
    assert "an administrator's is the whole hub" in told.found
    (warning,) = hub.ok("GET", "/session")["warnings"]
    assert warning.startswith("all pages are on one host name")
    assert hub.ok("GET", "/session", "ann")["warnings"] == []
    with contextlib.closing(logged_in(one)) as client:
        paths = {c.name: c.path for c in client.cookies.jar}
    # what shows a recent login, and the session, are not sent to notebook servers even so
    assert paths[f"mlp-session-{hub.port}"] == "/services/mlp/"
    assert paths[f"mlp-recent-{hub.port}"] == "/services/mlp/"
    assert paths[f"mlp-recent-{hub.port}-hub"] == "/hub/"
    assert paths["jupyterhub-hub-login"] == "/hub/"


def test_the_next_up_puts_users_apart_again(hub: LiveHub) -> None:
    hub.env.pop("MLP_USERS_DOMAIN")
    text = hub.up()
    assert f"http://localhost:{hub.port}/" in text
    assert f"http://NAME.localhost:{hub.port}/" in text
    assert "one host name" not in text
    assert names(hub).status == "ok"
    assert hub.ok("GET", "/session")["warnings"] == []
    with contextlib.closing(logged_in(f"http://localhost:{hub.port}")) as client:
        guarded = {c.name for c in client.cookies.jar if c.name.startswith("__Host-")}
    assert len(guarded) == 4, guarded
    hub.env["MLP_USERS_DOMAIN"] = "none"
    hub.up()
    assert names(hub).status == "warn"

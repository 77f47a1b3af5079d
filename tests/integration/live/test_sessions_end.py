"""A new password, and an administrator's reset, end the platform's sessions, tokens and open streams; jobs go on."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from support.hubs.hub_stack import Browser
from support.hubs.live_hub import PASSWORD, LiveHub
from support.waiting import PATIENCE_S, wait_for

API = "/services/mlp/api/v1"
NEW = "another long password"


class Person:
    """Somebody logged in at the platform's pages, a thief with a copy of all cookies, and one who opened a stream."""

    def __init__(self, hub: LiveHub, name: str) -> None:
        self.hub, self.name = hub, name
        hub.add_user(name)
        self.here = Browser(hub)
        self.here.login(name)
        self.here.get("/services/mlp/login")
        self.copied = httpx.Client(base_url=hub.url, timeout=PATIENCE_S, trust_env=False)
        hub.clients.append(self.copied)
        for cookie in self.here.http.cookies.jar:
            self.copied.cookies.jar.set_cookie(cookie)
        self.token = hub.run("token", "--user", name).stdout.strip()
        hub.submit(name, "goes-on", "import time; time.sleep(600)", cpu=0.1, ram=256)
        hub.wait_phase(name, "goes-on", "running")
        assert self.session(self.copied) == self.session(self.here.http) == 200

    def session(self, browser: httpx.Client) -> int:
        return browser.get(f"{API}/session").status_code

    def with_token(self) -> int:
        return self.hub.http.get(
            f"{API}/session", headers={"Authorization": f"Bearer {self.token}"}
        ).status_code

    def stream(self) -> ClientConnection:
        """Open the job's stream as the thief."""
        jar = "; ".join(f"{c.name}={c.value}" for c in self.copied.cookies.jar)
        path = f"{API}/users/{self.name}/jobs/goes-on:stream"
        return connect(
            f"ws://localhost:{self.hub.port}{path}", additional_headers={"Cookie": jar}, proxy=None
        )


def _end_of(stream: ClientConnection) -> int | None:
    """Wait for the end of a stream and return its code."""
    try:
        while True:
            stream.recv(timeout=PATIENCE_S)
    except ConnectionClosed as closed:
        return None if closed.rcvd is None else closed.rcvd.code


def change(person: Person) -> str:
    page = "/hub/change-password"
    fields = {"old_password": PASSWORD, "new_password": NEW, "new_password_confirmation": NEW}
    assert "is changed" in person.here.post(page, page, fields).text
    return NEW


def reset_by_the_panel(person: Person) -> str:
    made = person.hub.ok("PUT", f"/users/{person.name}:password")
    assert made["username"] == person.name
    return str(made["password"])


def reset_by_the_command(person: Person) -> str:
    person.hub.run("user", "password", person.name, "--password-stdin", stdin=NEW + "\n")
    return NEW


def logout_by_the_command(person: Person) -> str:
    assert "logged out everywhere" in person.hub.run("user", "logout", person.name).stdout
    return PASSWORD


@pytest.mark.parametrize("act", [change, reset_by_the_panel, reset_by_the_command, logout_by_the_command])
def test_all_sessions_and_streams_end_and_jobs_continue(hub: LiveHub, act: Callable[[Person], str]) -> None:
    person = Person(hub, act.__name__.replace("_", "-"))
    with person.stream() as stream:
        stream.recv()
        password = act(person)
        assert _end_of(stream) == 4401
    wait_for(lambda: person.session(person.copied) == 401)
    wait_for(lambda: person.with_token() == 401)
    assert person.copied.get("/hub/home").status_code == 302
    hub._tokens.pop(person.name, None)
    assert hub.job(person.name, "goes-on")["phase"] == "running"
    # this browser is in again without a word where its person changed the password, and by the new one elsewhere
    back = person.here if act is change else Browser(hub)
    if act is not change:
        back.login(person.name, password)
    back.get("/services/mlp/login")
    assert person.session(back.http) == 200
    done = hub.ok("GET", "/audit?limit=20")
    if act is not change:
        assert (person.name, "admin" if act is reset_by_the_panel else "mlp-operator") in [
            (e["object"], e["actor"]) for e in done if e["action"] in ("user.password", "user.logout")
        ]
    hub.ok("PUT", f"/users/{person.name}/jobs/goes-on:cancel", person.name)


def test_a_person_logs_out_everywhere_by_rest_and_nobody_else_does_it_for_them(hub: LiveHub) -> None:
    person = Person(hub, "lone")
    assert hub.call("PUT", "/users/lone:logout", "ann").json()["reason"] == "NotFound"
    assert hub.call("PUT", "/users/lone:password", "lone", {"password": NEW}).json()["reason"] == "NotFound"
    assert (
        hub.call("PUT", "/users/admin:password", "admin", {"password": NEW}).json()["reason"] == "Forbidden"
    )
    assert person.session(person.copied) == 200
    assert hub.call("PUT", "/users/lone:logout", "lone").status_code == 200
    assert person.session(person.copied) == 401  # at once: the service was asked itself
    assert person.with_token() == 401
    hub._tokens.pop("lone")
    hub.ok("PUT", "/users/lone/jobs/goes-on:cancel", "lone")

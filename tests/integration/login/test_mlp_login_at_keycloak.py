"""The device flow of a real Keycloak: `mlp`'s half of it, and what the hub makes of the tokens that come out of it."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest

from mlp.cli import device
from mlp.errors import Refused
from mlp_hub.hub_integration.providers.login.device import DeviceFlow
from mlp_hub.hub_integration.providers.protocols.oidc import OidcProvider
from mlp_hub.hub_integration.providers.protocols.provider import ProviderIdentity
from mlp_hub.hub_integration.tokens.cli_codes import Wrong
from mlp_hub.settings import Settings
from support.hubs.jupyterhub_database import memory_of_logins
from support.local_names import LocalNames
from support.login.keycloak import PASSWORD, Keycloak, Realm
from support.waiting import PATIENCE_S


@pytest.fixture(scope="module")
def realm(keycloak: Keycloak) -> Iterator[Realm]:
    made = keycloak.realm("http://localhost:1/*")
    made.add_user("ann", "/ml/red")
    made.add_user("bob", "/ml/blue")
    yield made
    made.delete()


@pytest.fixture
def loop() -> Iterator[asyncio.Runner]:
    """One loop for all that a test asks of the provider: connections belong to it."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def flow(realm: Realm, tmp_path: Path) -> DeviceFlow:
    settings = Settings.load({"MLP_HOME": str(tmp_path), "HOME": str(tmp_path), **realm.environ()})
    return DeviceFlow(settings, OidcProvider(settings))


def told(loop: asyncio.Runner, flow: DeviceFlow) -> dict[str, str]:
    found = loop.run(flow.device_endpoints())
    assert found is not None
    return found


@pytest.fixture
def db() -> Iterator[Any]:
    with memory_of_logins() as made:
        yield made


class Person:
    """Somebody in front of Keycloak's pages, who types in a code."""

    def __init__(self) -> None:
        self.http = httpx.Client(
            transport=LocalNames(), follow_redirects=True, trust_env=False, timeout=PATIENCE_S
        )

    def answer(self, where: str, name: str, *, yes: bool) -> None:
        """Log in at the address that has the code in it, and say yes or no to what asks."""
        page = self._send(self.http.get(where), {"username": name, "password": PASSWORD})
        answered = self._send(page, {"accept": "Yes"} if yes else {"cancel": "No"})
        assert answered.status_code < 500, answered.text
        self.http.close()

    def _send(self, page: httpx.Response, fields: dict[str, str]) -> httpx.Response:
        form = re.search(r'<form[^>]+action="([^"]+)"', page.text)
        assert form, page.text
        hidden = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page.text))
        return self.http.post(str(page.url.join(unescape(form[1]))), data={**hidden, **fields})


def logged_in(
    flow: dict[str, str], monkeypatch: pytest.MonkeyPatch, name: str, *, yes: bool = True
) -> tuple[str, str]:
    """Go through the flow while a person answers the page that `mlp` opens."""
    answering: list[threading.Thread] = []

    def opened(where: str) -> None:
        answering.append(threading.Thread(target=Person().answer, args=(where, name), kwargs={"yes": yes}))
        answering[0].start()

    monkeypatch.setattr(device.browser, "open_page", opened)
    try:
        return device.tokens(flow, opens=True)
    finally:
        answering[0].join()


def test_a_login_by_device_code_is_known_with_its_groups(
    loop: asyncio.Runner, realm: Realm, flow: DeviceFlow, monkeypatch: pytest.MonkeyPatch, db: Any
) -> None:
    where = told(loop, flow)
    assert where["begin"].startswith(realm.issuer)
    access_token, id_token = logged_in(where, monkeypatch, "ann")
    found = loop.run(flow.whose(db, access_token, id_token))
    assert isinstance(found, ProviderIdentity)
    assert (found.issuer, found.subject) == (realm.issuer, realm.user_id("ann"))
    assert (found.claimed_name, found.groups) == ("ann", ("/ml/red",))
    with pytest.raises(Wrong, match="was used"):
        loop.run(flow.whose(db, access_token, id_token))


def test_a_login_that_the_user_declines_gives_no_token(
    loop: asyncio.Runner, flow: DeviceFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Refused, match="refused at"):
        logged_in(told(loop, flow), monkeypatch, "ann", yes=False)


def test_a_login_of_another_client_is_not_taken(
    loop: asyncio.Runner, flow: DeviceFlow, monkeypatch: pytest.MonkeyPatch, db: Any
) -> None:
    access_token, id_token = logged_in({**told(loop, flow), "client_id": "another-app"}, monkeypatch, "ann")
    with pytest.raises(Wrong, match="another audience than"):
        loop.run(flow.whose(db, access_token, id_token))


def test_the_tokens_of_two_people_are_not_taken_together(
    loop: asyncio.Runner, flow: DeviceFlow, monkeypatch: pytest.MonkeyPatch, db: Any
) -> None:
    anns, _ = logged_in(told(loop, flow), monkeypatch, "ann")
    _, bobs = logged_in(told(loop, flow), monkeypatch, "bob")
    with pytest.raises(Wrong):
        loop.run(flow.whose(db, anns, bobs))


def test_an_account_disabled_since_its_login_gives_no_token(
    loop: asyncio.Runner, realm: Realm, flow: DeviceFlow, monkeypatch: pytest.MonkeyPatch, db: Any
) -> None:
    realm.add_user("cid")
    access_token, id_token = logged_in(told(loop, flow), monkeypatch, "cid")
    realm.disable("cid")
    with pytest.raises(Wrong, match="no longer knows this login"):
        loop.run(flow.whose(db, access_token, id_token))

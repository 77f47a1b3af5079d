"""Keycloak ends and comes back while people are inside, and the doctor tells of it."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from company_login import enter_at_keycloak, led_to, sent_to_provider, step
from hub_stack import Browser, HubStack
from keycloak import PASSWORD, KeycloakProcess, Realm, own_keycloak
from mlp_hub.cli import checks_login
from mlp_hub.cli.checks import Check
from mlp_hub.cli.checks_login import login as look
from waiting import PATIENCE_S, wait_for

BEGIN = "/hub/oauth_login?next=/hub/home"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The doctor waits however slow the machine is: it is to say what Keycloak answers."""
    monkeypatch.setattr(checks_login, "_PATIENCE_S", PATIENCE_S)


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[KeycloakProcess, Realm]]:
    place = Path(tempfile.mkdtemp(prefix="mlp-keycloak-"))
    with own_keycloak(place) as (keycloak, process):
        realm = keycloak.realm("*")
        realm.add_user("ann", "/ml/red")
        yield process, realm


@pytest.fixture(scope="module")
def hub(running: tuple[KeycloakProcess, Realm]) -> Iterator[HubStack]:
    home = Path(tempfile.mkdtemp(prefix="mlp-login-"))
    more = {"MLP_LOGIN_TENANTS": "/ml/{tenant} -> {tenant}", "MLP_LOGIN_REFRESH_S": "1"}
    made = HubStack(home, **running[1].environ(**more))
    try:
        made.up()
        yield made
    finally:
        made.down()
        shutil.rmtree(home, ignore_errors=True)


def log_in(hub: HubStack) -> Browser:
    browser = Browser(hub)
    answer = enter_at_keycloak(browser, sent_to_provider(browser), "ann", PASSWORD)
    browser.get(led_to(step(browser, led_to(answer))))
    return browser


def failed(found: list[Check]) -> list[Check]:
    return [one for one in found if one.status == "fail"]


def test_those_inside_stay_newcomers_are_told_and_all_is_well_again_once_it_is_back(
    hub: HubStack, running: tuple[KeycloakProcess, Realm]
) -> None:
    process, realm = running
    inside = log_in(hub)
    assert inside.get("/hub/home").url.path == "/hub/home"
    assert failed(look(hub.settings)) == []

    process.stop()
    assert inside.get("/hub/home").url.path == "/hub/home"
    # for some seconds the hub takes it for there, as it was when it was asked last
    wait_for(lambda: step(Browser(hub), BEGIN).status_code == 503, every=0.5)
    assert failed(look(hub.settings)), "the doctor does not see that Keycloak is away"

    process.start()
    assert failed(look(hub.settings)) == []
    wait_for(lambda: step(Browser(hub), BEGIN).is_redirect, every=0.5)
    assert log_in(hub).get("/hub/home").url.path == "/hub/home"
    realm.join("ann", "/ml/blue")
    log_in(hub)
    assert set(hub.api("GET", "/users/ann").json()["groups"]) == {"/ml/red", "/ml/blue"}


def test_the_doctor_tells_what_keycloak_has_otherwise(
    hub: HubStack, running: tuple[KeycloakProcess, Realm]
) -> None:
    _, realm = running
    realm.change_client("mlp-hub", redirectUris=["https://hub.example.org/hub/oauth_callback"])
    (found,) = failed(look(hub.settings))
    assert "/hub/oauth_callback" in found.remedy, json.dumps(found.found)
    realm.change_client("mlp-hub", redirectUris=["*"], secret="another")
    (found,) = failed(look(hub.settings))
    assert "mlp-hub" in found.found

"""Keycloak goes away and comes back while people are inside, and the doctor tells of it.

Each time it is cut off; `make test-whole` ends one and starts it again.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from mlp_hub.cli.doctor import login as checks_login
from mlp_hub.cli.doctor.checks import Check
from mlp_hub.cli.doctor.login import login as look
from support.failover.cut_line import LineOfThread
from support.hubs.hub_stack import Browser, HubStack
from support.login.company_login import enter_at_keycloak, led_to, sent_to_provider, step
from support.login.keycloak import PASSWORD, Keycloak, Realm, own_keycloak
from support.waiting import PATIENCE_S, wait_for

pytestmark = pytest.mark.whole  # that those inside stay is seen in test_groups_within_a_minute
BEGIN = "/hub/oauth_login?next=/hub/home"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The doctor waits however slow the machine is: it is to say what Keycloak answers."""
    monkeypatch.setattr(checks_login, "_PATIENCE_S", PATIENCE_S)


@dataclass(frozen=True)
class Away:
    """A realm whose Keycloak can be taken away."""

    realm: Realm
    take: Callable[[], None]
    bring_back: Callable[[], None]


@pytest.fixture(scope="module", params=["cut off", "restarted"])
def running(request: pytest.FixtureRequest) -> Iterator[Away]:
    """A realm with ann."""

    def with_ann(keycloak: Keycloak) -> Realm:
        realm = keycloak.realm("*")
        realm.add_user("ann", "/ml/red")
        return realm

    if request.param == "restarted":
        with own_keycloak(Path(tempfile.mkdtemp(prefix="mlp-keycloak-"))) as (keycloak, process):
            yield Away(with_ann(keycloak), process.stop, process.start)
        return
    way = urlsplit(request.getfixturevalue("keycloak").url)
    assert way.hostname is not None
    assert way.port is not None
    line = LineOfThread(way.hostname, way.port)
    with Keycloak(f"http://127.0.0.1:{line.port}") as behind_it:  # which names itself as it is asked
        realm = with_ann(behind_it)
        yield Away(realm, line.cut, line.mend)
        realm.delete()
    line.close()


@pytest.fixture(scope="module")
def hub(running: Away) -> Iterator[HubStack]:
    home = Path(tempfile.mkdtemp(prefix="mlp-login-"))
    more = {"MLP_LOGIN_TENANTS": "/ml/{tenant} -> {tenant}", "MLP_LOGIN_REFRESH_S": "1"}
    made = HubStack(home, **running.realm.environ(**more))
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
    hub: HubStack, running: Away
) -> None:
    inside = log_in(hub)
    assert inside.get("/hub/home").url.path == "/hub/home"

    running.take()
    assert inside.get("/hub/home").url.path == "/hub/home"
    # for some seconds the hub takes it for there, as it was when it was asked last
    wait_for(lambda: step(Browser(hub), BEGIN).status_code == 503, every=0.5)
    assert failed(look(hub.settings)), "the doctor does not see that Keycloak is away"

    running.bring_back()
    assert failed(look(hub.settings)) == []
    wait_for(lambda: step(Browser(hub), BEGIN).is_redirect, every=0.5)
    assert log_in(hub).get("/hub/home").url.path == "/hub/home"
    running.realm.join("ann", "/ml/blue")
    log_in(hub)
    assert set(hub.api("GET", "/users/ann").json()["groups"]) == {"/ml/red", "/ml/blue"}


def test_the_doctor_tells_what_keycloak_has_otherwise(hub: HubStack, running: Away) -> None:
    realm = running.realm
    realm.change_client("mlp-hub", redirectUris=["https://hub.example.org/hub/oauth_callback"])
    (found,) = failed(look(hub.settings))
    assert "/hub/oauth_callback" in found.remedy, json.dumps(found.found)
    realm.change_client("mlp-hub", redirectUris=["*"], secret="another")
    (found,) = failed(look(hub.settings))
    assert "mlp-hub" in found.found

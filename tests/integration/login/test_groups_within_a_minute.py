"""A whole hub and a real Keycloak: who is taken out of a group or disabled there is out here, without a request of theirs.

One hub serves all tests; those that change it for the next come last.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.failover.cut_line import LineOfThread
from support.hubs.hub_stack import Browser
from support.hubs.live_hub import LiveHub
from support.login.company_login import enter_at_keycloak, led_to, sent_to_provider, step
from support.login.keycloak import PASSWORD, Keycloak, Realm
from support.waiting import wait_for

RULES = "/ml/{tenant} -> {tenant}, /ml/{tenant}/admins -> {tenant}:admin"
REFRESH_S = "2"
BACK_CHANNEL = "/hub/api/mlp/backchannel-logout"
JOB = {"code": "import time; time.sleep(3600)", "cpu": 0.1, "ram": 100}


@pytest.fixture(scope="module")
def line(keycloak: Keycloak) -> Iterator[LineOfThread]:
    """The way of the hub and of the browsers to Keycloak."""
    way = urlsplit(keycloak.url)
    assert way.hostname is not None
    assert way.port is not None
    made = LineOfThread(way.hostname, way.port)
    yield made
    made.close()


@pytest.fixture(scope="module")
def realm(line: LineOfThread) -> Iterator[Realm]:
    with Keycloak(f"http://127.0.0.1:{line.port}") as behind_it:  # which names itself as it is asked
        made = behind_it.realm("*")
        yield made
        made.delete()


@pytest.fixture(scope="module")
def hub(realm: Realm) -> Iterator[LiveHub]:
    """A hub whose people are the realm's, and whose tenants are made of their groups."""
    more = {
        "MLP_LOGIN_TENANTS": RULES,
        "MLP_LOGIN_NEW_TENANTS": "make",
        "MLP_LOGIN_TENANT_QUOTA": "cpu=2,ram=4096",
        "MLP_LOGIN_REFRESH_S": REFRESH_S,
    }
    hub = LiveHub(Path(tempfile.mkdtemp(prefix="mlp-groups-")), **realm.environ(**more))
    hub.home.chmod(0o755)  # users' sandboxes pass through it
    try:
        hub.up()
        yield hub
    finally:
        hub.destroy()
        shutil.rmtree(hub.home, ignore_errors=True)


def log_in(hub: LiveHub, name: str) -> Browser:
    browser = Browser(hub)
    answer = enter_at_keycloak(browser, sent_to_provider(browser), name, PASSWORD)
    page = browser.get(led_to(step(browser, led_to(answer))))
    assert page.url.path == "/hub/home", page.text[:2000]
    return browser


def tenants(hub: LiveHub, user: str) -> dict[str, tuple[str, str]]:
    """Return the tenants of a user with role and who manages it, asked by the hub's administrator."""
    found: dict[str, tuple[str, str]] = {}
    for tenant in hub.ok("GET", "/tenants"):
        for member in hub.ok("GET", f"/tenants/{tenant['name']}/members"):
            if member["user"] == user and member["source"] != "default":
                found[tenant["name"]] = (member["role"], member["managed_by"])
    return found


def reasons(hub: LiveHub) -> set[str]:
    """Return what does not work, as anybody is told."""
    return {problem["reason"] for problem in hub.http.get("/services/mlp/api/v1/health").json()["problems"]}


def left_out(hub: LiveHub) -> list[str]:
    found = hub.ok("GET", "/audit?action=group.left_out&limit=100")
    return [entry["detail"]["message"] for entry in found]


def submit(hub: LiveHub, user: str, name: str, tenant: str = "red") -> Any:
    return hub.call("POST", f"/users/{user}/jobs", user, {"name": name, "tenant": tenant, **JOB})


def by(hub: LiveHub) -> dict[str, str]:
    return {"Authorization": f"Bearer {hub.token('admin')}"}


def phase(hub: LiveHub, user: str, name: str) -> str:
    return str(hub.ok("GET", f"/users/{user}/jobs/{name}", "admin")["phase"])


def test_a_user_removed_from_a_group_can_no_longer_submit_and_running_jobs_continue(
    hub: LiveHub, realm: Realm
) -> None:
    realm.add_user("ann", "/ml/red")
    log_in(hub, "ann")
    assert submit(hub, "ann", "one").status_code == 201  # the tenant was made on first sight
    assert tenants(hub, "ann") == {"red": ("member", "Keycloak")}
    wait_for(lambda: phase(hub, "ann", "one") == "running")
    realm.leave("ann", "/ml/red")
    wait_for(lambda: tenants(hub, "ann") == {})  # nothing is asked in her name meanwhile
    assert submit(hub, "ann", "two").status_code == 403
    assert phase(hub, "ann", "one") == "running"


def test_two_groups_give_two_tenants_and_an_admins_group_its_admin(hub: LiveHub, realm: Realm) -> None:
    others = ("/ml/No Tenant", "/ML/cased", "/ml/deep/below", "/other/red")
    realm.add_user("bob", "/ml/green", "/ml/blue", "/ml/blue/admins", *others)
    log_in(hub, "bob")
    wait_for(lambda: set(tenants(hub, "bob")) == {"green", "blue"})
    assert tenants(hub, "bob")["blue"] == ("admin", "Keycloak")
    wait_for(lambda: any("No Tenant cannot be a team's name" in said for said in left_out(hub)))
    given = {tenant["name"] for tenant in hub.ok("GET", "/tenants")}
    assert not given & {"cased", "deep", "below"}
    refused = hub.call("PUT", "/tenants/blue/members/bob", "admin", {"role": "member"})
    assert (refused.status_code, refused.json()["reason"]) == (403, "WrongState")
    assert hub.call("DELETE", "/tenants/green/members/bob", "admin").json()["reason"] == "WrongState"
    realm.leave("bob", "/ml/blue/admins")
    wait_for(lambda: tenants(hub, "bob")["blue"][0] == "member")


def test_a_group_that_is_renamed_is_another_tenants(hub: LiveHub, realm: Realm) -> None:
    realm.add_user("carl", "/ml/brown")
    log_in(hub, "carl")
    wait_for(lambda: set(tenants(hub, "carl")) == {"brown"})
    realm.rename_group("/ml/brown", "beige")
    wait_for(lambda: set(tenants(hub, "carl")) == {"beige"})


@pytest.mark.parametrize(("leavers", "then"), [("finish", "running"), ("stop", "cancelled")])
def test_a_disabled_account_has_no_token_and_its_job_follows_the_tenants_policy(
    hub: LiveHub, realm: Realm, leavers: str, then: str
) -> None:
    user, tenant = f"dora-{leavers}", f"team-{leavers}"
    realm.add_user(user, f"/ml/{tenant}")
    browser = log_in(hub, user)
    hub.ok("GET", "/auth", user)
    wait_for(lambda: tenants(hub, user) != {})
    hub.ok("PUT", f"/tenants/{tenant}", "admin", {"cpu": 2, "ram": 4096, "leavers": leavers})
    assert submit(hub, user, "runs", tenant).status_code == 201
    wait_for(lambda: phase(hub, user, "runs") == "running")
    realm.disable(user)
    wait_for(lambda: hub.call("GET", "/auth", user).status_code == 401)
    wait_for(lambda: phase(hub, user, "runs") == then)
    assert tenants(hub, user) == {}
    assert browser.get("/hub/home").url.path == "/hub/login"


def test_a_running_server_ends_with_the_group_and_with_the_account(hub: LiveHub, realm: Realm) -> None:
    def servers(user: str) -> set[str]:
        return set(hub.http.get(f"/hub/api/users/{user}", headers=by(hub)).json()["servers"])

    for user, ending in (("fred", realm.leave), ("gina", realm.disable)):
        realm.add_user(user, f"/ml/of-{user}")
        log_in(hub, user)
        hub.ok("GET", "/auth", user)
        wait_for(lambda user=user: set(tenants(hub, user)) == {f"of-{user}"})
        options = {"tenant": f"of-{user}", "cpu": 0.2, "ram": 400}
        asked = hub.http.post(f"/hub/api/users/{user}/server", headers=by(hub), json=options)
        assert asked.status_code in (201, 202), asked.text
        wait_for(lambda user=user: servers(user) == {""})
        ending(*([user, f"/ml/of-{user}"] if ending == realm.leave else [user]))
        wait_for(lambda user=user: servers(user) == set())


def test_a_back_channel_logout_ends_sessions_at_once_and_a_programs_token_stays_valid(
    hub: LiveHub, realm: Realm
) -> None:
    way = {"backchannel.logout.url": f"http://127.0.0.1:{hub.port}{BACK_CHANNEL}"}
    realm.change_client(realm.client_id, attributes={**way, "backchannel.logout.session.required": "true"})
    realm.add_user("hanna", "/ml/red")
    browser = log_in(hub, "hanna")
    assert hub.call("GET", "/auth", "hanna").status_code == 200
    realm.log_out("hanna")
    wait_for(lambda: f"200 POST {BACK_CHANNEL}" in (hub.home / "log" / "hub.log").read_text())
    wait_for(lambda: browser.get("/hub/home").url.path == "/hub/login")
    assert hub.call("GET", "/auth", "hanna").status_code == 200
    log_in(hub, "hanna")


def test_while_keycloak_is_away_those_who_are_inside_stay(
    hub: LiveHub, realm: Realm, line: LineOfThread
) -> None:
    realm.add_user("eva", "/ml/red")
    browser = log_in(hub, "eva")
    wait_for(lambda: set(tenants(hub, "eva")) == {"red"})
    line.cut()
    try:
        wait_for(lambda: "the provider cannot be asked" in (hub.home / "log" / "hub.log").read_text())
        wait_for(lambda: "ProviderUnavailable" in reasons(hub))
        assert browser.get("/hub/home").url.path == "/hub/home"
        assert submit(hub, "eva", "one").status_code == 201
        assert set(tenants(hub, "eva")) == {"red"}
    finally:
        line.mend()
    wait_for(lambda: "ProviderUnavailable" not in reasons(hub))
    realm.leave("eva", "/ml/red")
    wait_for(lambda: tenants(hub, "eva") == {})


def test_a_token_of_whose_login_ended_is_taken_no_longer_than_is_set(hub: LiveHub, realm: Realm) -> None:
    hub.env["MLP_LOGIN_UNSEEN_S"] = "0"
    hub.up()
    realm.add_user("ida", "/ml/red")
    log_in(hub, "ida")
    assert hub.call("GET", "/auth", "ida").status_code == 200
    realm.log_out("ida")
    wait_for(lambda: hub.call("GET", "/auth", "ida").status_code == 401)
    log_in(hub, "ida")
    wait_for(lambda: hub.call("GET", "/auth", "ida").status_code == 200)

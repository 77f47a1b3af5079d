"""A real hub and a real Keycloak: the way that people go."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.hubs.hub_stack import Browser, HubStack, user_token
from support.login.company_login import enter_at_keycloak, led_to, query, sent_to_provider, step
from support.login.keycloak import PASSWORD, Keycloak, Realm
from support.waiting import wait_for


@pytest.fixture(scope="module")
def realm(keycloak: Keycloak) -> Iterator[Realm]:
    made = keycloak.realm("*", editUsernameAllowed=True)
    yield made
    made.delete()


@pytest.fixture(scope="module")
def hub(realm: Realm) -> Iterator[HubStack]:
    home = Path(tempfile.mkdtemp(prefix="mlp-login-"))
    made = HubStack(
        home,
        **realm.environ(
            MLP_LOGIN_ADMIN_GROUPS="/hub-admins",
            MLP_LOGIN_TENANTS="/ml/{tenant} -> {tenant}",
            MLP_LOGIN_REFRESH_S="1",
        ),
    )
    try:
        made.up()
        yield made
    finally:
        made.down()
        shutil.rmtree(home, ignore_errors=True)


def log_in(hub: HubStack, name: str) -> Browser:
    browser = Browser(hub)
    answer = enter_at_keycloak(browser, sent_to_provider(browser), name, PASSWORD)
    page = browser.get(led_to(step(browser, led_to(answer))))
    assert page.url.path == "/hub/home", page.text[:2000]
    return browser


def test_a_member_logs_in_with_groups_and_is_the_same_after_a_new_name(hub: HubStack, realm: Realm) -> None:
    realm.add_user("ann", "/ml/red")
    log_in(hub, "ann")
    assert hub.api("GET", "/users/ann").json()["groups"] == ["/ml/red"]
    realm.change("ann", username="ann.married")
    log_in(hub, "ann.married")
    assert hub.api("GET", "/users/ann.married").status_code == 404
    realm.add_user("ann", email="another.ann@example.org")  # somebody else
    log_in(hub, "ann")
    assert hub.api("GET", "/users/ann-2").json()["groups"] == []


def test_a_wrong_password_stays_at_keycloak(hub: HubStack, realm: Realm) -> None:
    realm.add_user("bob")
    browser = Browser(hub)
    answer = enter_at_keycloak(browser, sent_to_provider(browser), "bob", "wrong")
    assert answer.status_code == 200
    assert step(browser, "/hub/home").is_redirect


def test_administrators_are_those_of_the_group_now(hub: HubStack, realm: Realm) -> None:
    def is_admin(name: str) -> bool:
        return bool(hub.api("GET", f"/users/{name}").json()["admin"])

    hub.add("boss", admin=True)  # of the hub's own
    realm.add_user("olga", "/hub-admins")
    browser = log_in(hub, "olga")
    assert is_admin("olga")
    realm.leave("olga", "/hub-admins")
    wait_for(lambda: not is_admin("olga"))  # without a request of hers
    assert browser.get("/hub/admin").status_code == 403
    realm.join("olga", "/hub-admins")
    wait_for(lambda: is_admin("olga"))
    assert is_admin("boss")


def test_logging_out_ends_the_session_there(hub: HubStack, realm: Realm) -> None:
    realm.add_user("carl")
    browser = log_in(hub, "carl")
    out = led_to(step(browser, "/hub/logout"))
    assert query(out)["post_logout_redirect_uri"] == f"{hub.url}/hub/login"
    assert led_to(step(browser, out)).startswith(f"{hub.url}/hub/login")
    page = browser.get(sent_to_provider(browser))
    assert "kc-form-login" in page.text, "the password is asked for again"


def test_logging_out_in_the_older_of_two_browsers_ends_its_session_without_a_question(
    hub: HubStack, realm: Realm
) -> None:
    realm.add_user("cleo")
    older, newer = log_in(hub, "cleo"), log_in(hub, "cleo")
    out = led_to(step(older, "/hub/logout"))
    assert led_to(step(older, out)).startswith(f"{hub.url}/hub/login"), "Keycloak asked first"
    page = older.get(sent_to_provider(older))
    assert "kc-form-login" in page.text, "the password is asked for again"
    assert newer.get("/hub/home").status_code == 200
    assert "kc-form-login" not in newer.get("/hub/oauth_login?next=/hub/home").text, (
        "its session there goes on"
    )


def test_nobody_reads_the_provider_s_tokens_of_a_person_by_jupyterhub_s_api(
    hub: HubStack, realm: Realm
) -> None:
    realm.add_user("dan")
    log_in(hub, "dan")
    hub.add("root2", admin=True)
    boss = user_token(hub, "root2", "admin:users")
    shown = hub.api("GET", "/users/dan", boss).json()
    assert (shown["name"], "auth_state" in shown) == ("dan", False)
    assert hub.api("PATCH", "/users/dan", boss, json={"auth_state": {"access_token": "x"}}).status_code == 403


def test_keys_may_change(hub: HubStack, realm: Realm) -> None:
    realm.add_user("dora")
    log_in(hub, "dora")
    realm.rotate_keys()
    log_in(hub, "dora")


def test_keycloak_asks_for_the_password_again_when_an_action_needs_confirmation(
    hub: HubStack, realm: Realm
) -> None:
    realm.add_user("emil")
    browser = log_in(hub, "emil")
    confirm = led_to(step(browser, "/hub/oauth_login?confirm=1&next=/hub/token"))
    answer = enter_at_keycloak(browser, confirm, "emil", PASSWORD)
    assert led_to(step(browser, led_to(answer))) == "/hub/token"

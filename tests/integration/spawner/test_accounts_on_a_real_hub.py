"""Sign-up, approval, lockout and the accounts API against a real JupyterHub."""

from __future__ import annotations

import pytest

from support.hubs.hub_stack import PASSWORD, Browser, text_of, user_token

CONFIG = """
c.NativeAccounts.lockout_s = 7200
c.NativeAccounts.signup_burst = c.NativeAccounts.login_burst = 1000
c.MLPHub.notebook_ram = 512
"""
STACK = {"config": CONFIG}


def test_signing_up_logging_in_and_approval(stack):
    person = Browser(stack)
    assert "An administrator must approve it" in text_of(person.get("/hub/signup"))
    done = person.sign_up("ann")
    assert done.status_code == 201
    assert "waits for an administrator" in text_of(done)
    refused = person.login("ann")
    assert refused.status_code == 403
    assert "The account ann waits for the approval of an administrator." in text_of(refused)
    assert "waits for the approval" not in text_of(Browser(stack).login("ann", "a wrong password"))
    listed = stack.api("GET", "/mlp/accounts").json()
    assert {k: v for k, v in listed[0].items() if k != "created"} == {
        "name": "ann",
        "authorized": False,
        "admin": False,
        "servers": 0,
        "last_activity": None,
    }
    assert stack.api("POST", "/mlp/accounts/ann/authorize").json()["authorized"] is True
    home = person.login("ann")
    assert str(home.url).endswith("/hub/home")
    assert 'href="/services/mlp/"' in home.text
    assert "Admin panel" not in home.text


@pytest.mark.parametrize("name", ["admin", "Admin", "ADMIN "])
def test_nobody_signs_up_as_the_administrator(stack, name):
    refused = Browser(stack).sign_up(name)
    assert refused.status_code == 409
    assert "The user name admin is taken" in text_of(refused)


@pytest.mark.parametrize("name", ["Cat", "CAT", "cat"])
def test_a_name_is_taken_in_every_spelling(stack, name):
    if not any(a["name"] == "cat" for a in stack.api("GET", "/mlp/accounts").json()):
        stack.add("cat")
    assert Browser(stack).sign_up(name, "another long password").status_code == 409


@pytest.mark.parametrize("name", ["ｃａｔ", "\u212aate", "a b", "../x", "a/b", "x" * 33])
def test_other_alphabets_and_odd_names_are_refused(stack, name):
    refused = Browser(stack).sign_up(name)
    assert refused.status_code == 400
    assert "cannot be used" in text_of(refused)


@pytest.mark.parametrize(
    ("password", "why"), [("short", "needs at least 8"), ("password1", "too common"), ("x" * 73, "72")]
)
def test_weak_passwords_are_refused(stack, password, why):
    refused = Browser(stack).sign_up("weak", password)
    assert refused.status_code == 400
    assert why in text_of(refused)


def test_people_are_made_and_deleted_in_the_panel_and_nowhere_else(stack):
    # a user of JupyterHub's own making could neither log in nor sign up, and would be in no list
    stack.add("lou")
    stack.add("root2", admin=True)
    boss = user_token(stack, "root2", "admin:users", "delete:users")
    for method, path in (
        ("POST", "/users"),
        ("POST", "/users/ghost"),
        ("DELETE", "/users/lou"),
        ("PATCH", "/users/lou"),
    ):
        for token in (boss, None):
            refused = stack.api(
                method, path, token, json={"usernames": ["ghost"], "name": "other", "admin": True}
            )
            assert refused.status_code == 403, (method, path, refused.text)
            assert "people are managed in the panel" in refused.json()["msg"]
    assert stack.api("GET", "/users/ghost").status_code == 404
    assert stack.api("GET", "/users/lou").json()["admin"] is False
    assert Browser(stack).sign_up("ghost").status_code == 201


def test_jupyterhubs_own_admin_page_leads_to_the_panel(stack):
    stack.add("ada", admin=True)
    stack.add("bea")
    ada, bea = Browser(stack), Browser(stack)
    home = ada.login("ada")
    bea.login("bea")
    assert ada.get("/hub/admin", follow_redirects=False).headers["location"] == "/services/mlp/admin/users"
    assert bea.get("/hub/admin", follow_redirects=False).status_code == 403
    assert "/hub/admin" not in home.text


def test_accounts_come_in_pages_by_name_and_are_found_by_a_part_of_it(stack):
    for name in ("pg-c", "pg-a", "pg-b", "pg_d"):
        stack.add(name)
    Browser(stack).sign_up("pg-e")
    found = []
    after = ""
    while True:
        page = stack.api("GET", "/mlp/accounts", params={"search": "pg", "limit": 2, "after": after})
        assert page.headers["X-Total-Count"] == "5"
        if not page.json():
            break
        found += [a["name"] for a in page.json()]
        after = found[-1]
    assert sorted(found) == ["pg-a", "pg-b", "pg-c", "pg-e", "pg_d"]
    waiting = stack.api("GET", "/mlp/accounts", params={"waiting": "true", "search": "pg"}).json()
    assert [a["name"] for a in waiting] == ["pg-e"]
    # what stands for anything in SQL stands for itself here
    assert [a["name"] for a in stack.api("GET", "/mlp/accounts", params={"search": "g_d"}).json()] == ["pg_d"]
    assert stack.api("GET", "/mlp/accounts", params={"limit": "0"}).status_code == 400


def test_an_administrator_is_made_and_unmade_but_for_the_last_one(stack):
    stack.add("nan")
    act = "/mlp/accounts/nan/admin"
    assert stack.api("POST", act, json={"admin": True}).json()["admin"] is True
    assert "admin" in stack.api("GET", "/users/nan").json()["roles"]
    assert stack.api("POST", act, json={"admin": False}).json()["admin"] is False
    assert "admin" not in stack.api("GET", "/users/nan").json()["roles"]
    assert stack.api("POST", act, json={}).status_code == 400
    Browser(stack).sign_up("ned")
    assert stack.api("POST", "/mlp/accounts/ned/admin", json={"admin": True}).status_code == 409


def test_a_name_is_locked_after_five_wrong_passwords(stack):
    stack.add("locked")
    person = Browser(stack)
    for _ in range(5):
        assert "Invalid username or password" in text_of(person.login("locked", "not the password"))
    assert "Too many failed logins for locked. Try again in 120 minutes." in text_of(person.login("locked"))
    answer = stack.http.post(
        "/hub/api/users/locked/tokens", json={"auth": {"username": "locked", "password": PASSWORD}}
    )
    assert answer.status_code == 403


def test_the_accounts_api_wants_the_scope(stack):
    stack.add("dan")
    token = user_token(stack, "dan")
    for method, path in (
        ("GET", "/mlp/accounts"),
        ("POST", "/mlp/accounts"),
        ("POST", "/mlp/accounts/dan/authorize"),
        ("DELETE", "/mlp/accounts/dan"),
    ):
        assert stack.api(method, path, token, json={}).status_code in (403, 404), path
        assert stack.http.request(method, f"/hub/api{path}").status_code == 403, path
        spawner = stack.settings.secret("spawner_token")
        assert stack.api(method, path, spawner, json={}).status_code == 403, path


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "x"},
        {"name": 1, "password": PASSWORD},
        {"name": "x", "password": PASSWORD, "root": True},
        [],
    ],
)
def test_a_wrong_body_is_refused_in_words(stack, body):
    answer = stack.api("POST", "/mlp/accounts", json=body)
    assert answer.status_code == 400
    assert answer.json().get("msg") or answer.json()["message"]


def test_a_deauthorised_account_loses_its_sessions_and_tokens(stack):
    stack.add("eve")
    person = Browser(stack)
    person.login("eve")
    token = user_token(stack, "eve")
    assert stack.api("GET", "/user", token).status_code == 200
    assert stack.api("POST", "/mlp/accounts/eve/deauthorize").json()["authorized"] is False
    assert stack.api("GET", "/user", token).status_code == 403
    assert "/hub/login" in str(person.get("/hub/home").url)
    assert "waits for the approval" in text_of(person.login("eve"))


def test_a_deleted_account_can_be_asked_for_again_and_waits(stack):
    stack.add("fay")
    token = user_token(stack, "fay")
    assert stack.api("DELETE", "/mlp/accounts/fay").status_code == 204
    assert stack.api("DELETE", "/mlp/accounts/fay").status_code == 404
    assert stack.api("GET", "/user", token).status_code == 403
    person = Browser(stack)
    assert person.sign_up("fay").status_code == 201
    assert "waits for the approval" in text_of(person.login("fay"))


def test_the_administrator_is_made_by_the_api_and_the_last_one_stays(stack):
    stack.add("admin", admin=True)
    person = Browser(stack)
    home = person.login("admin")
    assert "Admin panel" in home.text
    others = [
        a["name"] for a in stack.api("GET", "/mlp/accounts").json() if a["admin"] and a["name"] != "admin"
    ]
    for name in others:
        assert stack.api("POST", f"/mlp/accounts/{name}/deauthorize").status_code == 200
    answer = stack.api("POST", "/mlp/accounts/admin/deauthorize")
    assert (answer.status_code, answer.json()["reason"]) == (409, "Conflict")
    assert stack.api("DELETE", "/mlp/accounts/admin").status_code == 409
    stack.add("admin2", admin=True)
    assert stack.api("POST", "/mlp/accounts/admin2/deauthorize").status_code == 200


def test_approving_by_a_link_is_not_possible(stack):
    # NativeAuthenticator's own pages do it by GET, which any foreign page can cause
    person = Browser(stack)
    person.sign_up("gus")
    admin = Browser(stack)
    stack.add("boss", admin=True)
    admin.login("boss")
    assert admin.get("/hub/authorize/gus").status_code == 404
    assert admin.get("/hub/discard/gus").status_code == 404
    found = {a["name"]: a["authorized"] for a in stack.api("GET", "/mlp/accounts").json()}
    assert found["gus"] is False


def test_a_password_is_changed_by_its_owner(stack):
    stack.add("hal")
    person = Browser(stack)
    person.login("hal")
    new = "another long password"
    fields = {"old_password": "wrong one", "new_password": new, "new_password_confirmation": new}
    page = "/hub/change-password"
    assert "not right" in text_of(person.post(page, page, fields))
    assert "is changed" in text_of(person.post(page, page, {**fields, "old_password": PASSWORD}))
    assert str(Browser(stack).login("hal", new).url).endswith("/hub/home")


def test_the_operators_settings_reach_the_hub_last(stack):
    # lockout_s of this stack's own file was in force above; MLPHub's values reach the form
    stack.add("ida")
    person = Browser(stack)
    person.login("ida")
    assert 'value="512"' in person.get("/hub/spawn/ida").text


def test_logging_in_to_the_services_pages_needs_no_click(stack):
    stack.add("jan")
    person = Browser(stack)
    person.login("jan")
    page = person.get("/services/mlp/login")
    assert str(page.url).endswith("/services/mlp/page")
    assert [h.status_code for h in page.history] == [302, 302, 302]
    me = person.get("/services/mlp/api/v1/who").json()
    assert me["name"] == "jan"
    assert "custom:mlp:jobs:write" in me["scopes"]
    assert "custom:mlp:cluster:read" not in me["scopes"]


def test_a_login_without_a_target_opens_the_panel_for_administrators_and_first_steps_for_others(stack):
    for name, admin in (("liv", True), ("leo", False)):
        stack.add(name, admin=admin)
    liv, leo = (Browser(stack).login(name, next_url="/hub/") for name in ("liv", "leo"))
    assert "/services/mlp/admin" in [h.headers["location"] for h in liv.history]
    assert str(leo.url).endswith("/services/mlp/")  # whoever never had a notebook server


def test_an_administrators_session_holds_all_of_the_platforms_scopes(stack):
    stack.add("kim", admin=True)
    person = Browser(stack)
    person.login("kim")
    person.get("/services/mlp/login")
    me = person.get("/services/mlp/api/v1/who").json()
    assert {s for s in me["scopes"] if s.startswith("custom:")} >= {
        "custom:mlp:cluster:read",
        "custom:mlp:tenants:write",
        "custom:mlp:users:write",
    }


def test_the_root_alias_reaches_the_service(stack):
    assert stack.http.get("/api/v1/who").status_code == 401

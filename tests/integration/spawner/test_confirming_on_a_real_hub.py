"""A password entered again: whom nobody else can keep from it, what ends it, and what is written down of what it allows."""

from __future__ import annotations

import json

import pytest

from support.hubs.hub_stack import PASSWORD, Browser, text_of, user_token
from support.waiting import wait_for

STACK = {"config": "c.NativeAccounts.login_burst = 1000"}
CONFIRM = "/hub/confirm"
NEW = "another long password"


def logged_in(stack, name: str, **more) -> Browser:
    stack.add(name, **more)
    person = Browser(stack)
    assert str(person.login(name).url).endswith("/hub/home")
    return person


def confirm(person: Browser, password: str = PASSWORD):
    return person.post(CONFIRM, CONFIRM, {"password": password})


def ask_for_token(person: Browser, name: str, **asked):
    person.get("/hub/home")
    return person.http.post(f"/hub/api/users/{name}/tokens", headers=as_the_page(person), json=asked)


def as_the_page(person: Browser) -> dict[str, str]:
    xsrf = next(c.value for c in person.http.cookies.jar if c.name == "_xsrf" and c.path == "/hub/")
    return {"X-XSRFToken": xsrf, "Sec-Fetch-Mode": "cors", "Sec-Fetch-Site": "same-origin"}


def marks(person: Browser) -> list[str]:
    return [c.name for c in person.http.cookies.jar if "mlp-recent" in c.name]


def told(stack) -> list[dict]:
    calls = [c.split(" ", 2) for c in stack.ledger()["calls"] if c.startswith("token ")]
    return [{"user": user, **json.loads(body)} for _, user, body in calls]


def test_an_outsider_who_locks_a_name_keeps_its_owner_only_from_another_login(stack):
    chief = logged_in(stack, "chief", admin=True)
    outsider = Browser(stack)
    for _ in range(6):
        said = text_of(outsider.login("chief", "guessed"))
    assert "Too many failed logins for chief" in said
    assert "Too many failed logins" in text_of(Browser(stack).login("chief"))
    assert "The password is not right" in text_of(confirm(chief, "mistyped"))
    done = confirm(chief)
    assert done.status_code == 200
    assert "The password is not right" not in text_of(done)
    page = "/hub/change-password"
    fields = {"old_password": PASSWORD, "new_password": NEW, "new_password_confirmation": NEW}
    assert "is changed" in text_of(chief.post(page, page, fields))
    assert str(Browser(stack).login("chief", NEW).url).endswith("/hub/home")  # a new one unlocks


def test_guesses_in_a_found_browser_are_limited_like_logins_and_lock_nobody_out(stack):
    found = logged_in(stack, "lea")
    answers = [text_of(confirm(found, "guessed")) for _ in range(6)]
    assert ["The password is not right" in a for a in answers] == [True] * 5 + [False]
    assert "Too many failed logins for lea" in answers[-1]
    assert "Too many failed logins for lea" in text_of(confirm(found))
    assert str(Browser(stack).login("lea").url).endswith("/hub/home")


def test_a_logged_in_user_guesses_passwords_of_others_under_the_same_limit_as_outsiders(stack):
    stack.add("max")
    eve = logged_in(stack, "eve")
    answers = [text_of(eve.login("max", "guessed")) for _ in range(6)]
    assert "Too many failed logins for max" in answers[-1]


@pytest.mark.parametrize("way", ["logout", "logout-everywhere"])
def test_a_recent_login_ends_in_the_browser_that_logs_out(stack, way):
    name = f"nia-{way}"
    person = logged_in(stack, name)
    assert marks(person)
    if way == "logout":
        person.get("/hub/logout")
    else:
        done = person.post("/hub/change-password", "/hub/logout-everywhere", {})
        assert "logged out everywhere but here" in text_of(done)
        assert ask_for_token(person, name).status_code == 403
        confirm(person)
        assert ask_for_token(person, name).status_code == 201
        return
    assert marks(person) == []


def test_a_copied_recent_login_is_nothing_without_the_session_that_ended(stack):
    person = logged_in(stack, "ole")
    thief = Browser(stack)
    for cookie in person.http.cookies.jar:
        thief.http.cookies.jar.set_cookie(cookie)
    assert ask_for_token(thief, "ole").status_code == 201
    person.post("/hub/change-password", "/hub/logout-everywhere", {})
    assert marks(thief)
    assert ask_for_token(thief, "ole").status_code == 403


def test_a_token_makes_none_that_may_more_than_itself(stack):
    stack.add("rob")
    token = user_token(stack, "rob", "tokens!user", "read:users:name!user")
    before = stack.api("GET", "/users/rob/tokens").json()
    for more in ({}, {"scopes": ["inherit"]}, {"scopes": ["servers!user"]}, {"roles": ["user"]}):
        refused = stack.api("POST", "/users/rob/tokens", token, json=more)
        assert refused.status_code in (400, 403), (more, refused.text)
    refused = stack.api("POST", "/users/rob/tokens", token, json={"scopes": ["servers!user"]})
    assert "lacks delete:servers!user=rob" in refused.json()["message"]
    kept = stack.api("GET", "/users/rob/tokens").json()
    assert len(kept["api_tokens"]) == len(before["api_tokens"])
    for scopes in ([], ["read:users:name!user"]):
        made = stack.api("POST", "/users/rob/tokens", token, json={"scopes": scopes})
        assert made.status_code == 201
        assert {s.partition(":")[0] for s in made.json()["scopes"]} == {"read"}  # who it belongs to, no more
    whole = user_token(stack, "rob", "inherit")
    assert stack.api("POST", "/users/rob/tokens", whole, json={}).status_code == 201


def test_no_chain_of_tokens_ends_wider_or_later_than_it_began(stack):
    stack.add("cleo")
    ours = {"scopes": ["tokens!user", "read:users:name!user"], "expires_in": 3600}
    asking = stack.api("POST", "/users/cleo/tokens", json=ours).json()
    first = asking["token"]
    before = len(stack.api("GET", "/users/cleo/tokens").json()["api_tokens"])
    longer = {"scopes": ["read:users:name!user"], "expires_in": 7200}
    refused = stack.api("POST", "/users/cleo/tokens", first, json=longer)
    assert refused.status_code == 403, refused.text
    assert "cannot outlive" in refused.json()["message"]
    assert len(stack.api("GET", "/users/cleo/tokens").json()["api_tokens"]) == before
    same = stack.api("POST", "/users/cleo/tokens", first, json={"scopes": ["read:users:name!user"]}).json()
    ends = {t["id"]: t["expires_at"] for t in stack.api("GET", "/users/cleo/tokens").json()["api_tokens"]}
    assert ends[same["id"]] <= ends[asking["id"]]  # where no time is asked, no longer than the one that asks
    link = first
    for lasts in (1800, 900, 450):  # each link may as much as the one before it, and no longer
        link = stack.api(
            "POST", "/users/cleo/tokens", link, json={"scopes": ours["scopes"], "expires_in": lasts}
        ).json()["token"]
    for more in ("servers!user", "custom:mlp:jobs:write!user", "inherit"):
        wider = {"scopes": [more], "expires_in": 60}
        assert stack.api("POST", "/users/cleo/tokens", link, json=wider).status_code in (400, 403), more
    later = {"scopes": ours["scopes"], "expires_in": 3000}  # less than the first one has left
    assert stack.api("POST", "/users/cleo/tokens", link, json=later).status_code == 403
    assert len(stack.api("GET", "/users/cleo/tokens").json()["api_tokens"]) == before + 4


def test_a_token_made_on_the_hubs_page_is_audited_with_its_scopes(stack):
    person = logged_in(stack, "pia")
    made = ask_for_token(person, "pia", note="for\nthe run", scopes=["read:users:name!user"], expires_in=3600)
    assert made.status_code == 201
    assert ask_for_token(person, "pia").status_code == 201
    first, second = told(stack)[-2:]
    assert first.pop("expires") == made.json()["expires_at"]
    assert first == {
        "user": "pia",
        "actor": "pia",
        "note": "for\\nthe run",
        "scopes": "read:users:name!user",
    }
    assert (second["scopes"], second["expires"]) == ("all scopes of the user", "never")
    before = told(stack)
    user_token(stack, "pia")  # by the service, which writes it down itself
    assert ask_for_token(person, "pia", scopes=["no-such-scope"]).status_code == 400
    assert told(stack) == before


def test_a_token_is_ended_although_that_cannot_be_recorded_and_its_entry_follows(stack):
    person = logged_in(stack, "rita")
    one = ask_for_token(person, "rita").json()
    stack.tell_service(limits={"tokens": 0})
    try:
        gone = person.http.delete(f"/hub/api/users/rita/tokens/{one['id']}", headers=as_the_page(person))
        assert gone.status_code == 204
        assert stack.api("GET", "/user", one["token"]).status_code == 403
        assert [call for call in stack.ledger()["calls"] if call.startswith("ended rita ")] == []
    finally:
        stack.tell_service(limits={"tokens": 1})
    (told,) = wait_for(lambda: [c for c in stack.ledger()["calls"] if c.startswith("ended rita ")])
    assert json.loads(told.removeprefix("ended rita "))["token"] == one["id"]


def test_nobody_ends_or_records_the_end_of_anothers_token(stack):
    person, other = logged_in(stack, "sid"), logged_in(stack, "tom")
    one = ask_for_token(person, "sid").json()
    path = f"/hub/api/users/sid/tokens/{one['id']}"
    assert other.http.delete(path, headers=as_the_page(other)).status_code in (403, 404)
    assert stack.http.delete(path).status_code == 403
    assert (
        person.http.delete("/hub/api/users/sid/tokens/a999999", headers=as_the_page(person)).status_code
        == 404
    )
    assert [call for call in stack.ledger()["calls"] if call.startswith("ended sid ")] == []


def test_no_account_changes_at_the_hub_itself_without_an_entry(stack):
    """Somebody with the right asks the hub, past the platform's service; the operator's command does so too."""
    stack.add("boss", admin=True)
    stack.add("uma")
    operator = stack.settings.secret("operator_token")
    boss = user_token(stack, "boss", "admin:users", "read:users")
    assert Browser(stack).sign_up("vic").status_code == 201
    new = {"name": "wim", "password": PASSWORD, "authorized": True}
    asked = (
        ("POST", "/mlp/accounts/vic/authorize", {}),
        ("POST", "/mlp/accounts/uma/admin", {"admin": True}),
        ("POST", "/mlp/accounts/uma/password", {"password": "quite another one"}),
        ("POST", "/mlp/accounts", new),
        ("POST", "/mlp/accounts", {**new, "admin": True}),
    )

    def accounts():
        # the hub stores activity later, of the sign-up too
        return [{**one, "last_activity": None} for one in stack.api("GET", "/mlp/accounts").json()]

    before = accounts()
    stack.tell_service(limits={"changes": 0})
    try:
        for token in (operator, boss):
            for method, path, body in asked:
                refused = stack.api(method, path, token, json=body)
                assert (refused.status_code, "nothing was changed" in refused.text) == (503, True), (
                    path,
                    refused.text,
                )
        assert accounts() == before
    finally:
        stack.tell_service(limits={"changes": 1})
    assert stack.api("POST", "/mlp/accounts/vic/authorize", boss).status_code == 200
    assert stack.api("POST", "/mlp/accounts", operator, json={**new, "admin": True}).status_code == 201
    told = [call for call in stack.ledger()["calls"] if call.startswith("changing ")]
    assert [(one.split()[1], json.loads(one.split(None, 2)[2])) for one in told] == [
        ("vic", {"actor": "boss", "action": "user.approve"}),
        ("wim", {"actor": "mlp-operator", "action": "user.approve"}),
        ("wim", {"actor": "mlp-operator", "action": "user.admin", "admin": True}),
    ]
    assert (
        stack.api(
            "POST", "/mlp/accounts", boss, json={"name": "yan", "password": "x", "authorized": True}
        ).status_code
        == 400
    )
    assert len([call for call in stack.ledger()["calls"] if call.startswith("changing ")]) == 3, (
        "refused anyway"
    )


def test_rights_are_taken_away_although_the_service_is_away_and_their_entries_follow_once_and_in_order(stack):
    """The hub is killed meanwhile, too: entries are stored with the changes."""
    for name in ("xena", "yves", "zora", "walt"):
        stack.add(name, admin=name in ("xena", "walt"))
    walt = user_token(stack, "walt", "admin:users", "read:users")
    old = user_token(stack, "yves", "inherit")
    before = len(changed(stack))
    removals = (
        ("POST", "/mlp/accounts/xena/admin", {"admin": False}, {"action": "user.admin", "admin": False}),
        ("POST", "/mlp/accounts/yves/logout", {}, {"action": "user.logout"}),
        ("POST", "/mlp/accounts/yves/stop", {}, {"action": "user.stop_servers"}),
        ("POST", "/mlp/accounts/xena/deauthorize", {}, {"action": "user.deactivate"}),
        ("DELETE", "/mlp/accounts/zora", None, {"action": "user.delete"}),
    )
    stack.tell_service(limits={"changes": 0})
    try:
        for n, (method, path, body, _) in enumerate(removals):
            done = stack.api(method, path, walt, json=body)
            assert done.status_code in (200, 204), (path, done.text)
            if n == 1:
                stack.kill("hub")
                stack.start_hub()
                stack.wait_up()
        assert stack.api("GET", "/user", old).status_code == 403
        accounts = {one["name"]: one for one in stack.api("GET", "/mlp/accounts").json()}
        assert "zora" not in accounts
        assert (accounts["xena"]["admin"], accounts["xena"]["authorized"]) == (False, False)
        # to give something back is refused, before and after
        again = stack.api("POST", "/mlp/accounts/xena/authorize", walt)
        assert (again.status_code, "nothing was changed" in again.text) == (503, True)
        assert stack.api("POST", "/mlp/accounts/walt/deauthorize", walt).status_code == 403, "their own"
        assert len(changed(stack)) == before
    finally:
        stack.tell_service(limits={"changes": 1})
    assert stack.api("POST", "/mlp/accounts/xena/authorize", walt).status_code == 200
    told = changed(stack)[before:]
    keys = [fields.pop("once") for _, fields in told[:-1]]
    assert len(set(keys)) == len(removals)
    for _, fields in told:
        fields.pop("at", None)
    assert told == [
        *((path.split("/")[3], {"actor": "walt", **entry}) for _, path, _, entry in removals),
        ("xena", {"actor": "walt", "action": "user.approve"}),
    ]


def changed(stack) -> list[tuple[str, dict]]:
    calls = (c.split(" ", 2) for c in stack.ledger()["calls"] if c.startswith("changing "))
    return [(user, json.loads(body)) for _, user, body in calls]


def test_a_token_that_cannot_be_written_down_is_not_made(stack):
    person = logged_in(stack, "quin")
    count = len(stack.api("GET", "/users/quin/tokens").json()["api_tokens"])
    stack.tell_service(limits={"tokens": 0})
    try:
        refused = ask_for_token(person, "quin")
    finally:
        stack.tell_service(limits={"tokens": 1})
    assert refused.status_code == 503
    assert "No token was made" in refused.json()["message"]
    assert len(stack.api("GET", "/users/quin/tokens").json()["api_tokens"]) == count

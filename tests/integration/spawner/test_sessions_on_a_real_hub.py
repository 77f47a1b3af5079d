"""What ends with a logout, a new password and "Log out everywhere"; each is tried with cookies and tokens copied before."""

from __future__ import annotations

import httpx
import pytest

from support.hubs.hub_stack import PASSWORD, Browser, start_server, text_of, user_token
from support.local_names import LocalNames
from support.waiting import PATIENCE_S, wait_for

STACK = {"config": "c.NativeAccounts.login_burst = 1000"}
NEW = "another long password"
PAGE = "/hub/change-password"
FIELDS = {"old_password": PASSWORD, "new_password": NEW, "new_password_confirmation": NEW}


def copy_of(stack, person: Browser) -> httpx.Client:
    """Return a browser with the same cookies: somebody else's."""
    copied = httpx.Client(base_url=person.http.base_url, timeout=PATIENCE_S, transport=LocalNames())
    for cookie in person.http.cookies.jar:
        copied.cookies.jar.set_cookie(cookie)
    copied.headers["Sec-Fetch-Mode"] = "navigate"
    stack.clients.append(copied)
    return copied


def is_in(browser: httpx.Client) -> bool:
    """Whether the hub takes the browser for somebody."""
    return browser.get("/hub/home", follow_redirects=False).status_code == 200


def logged_in(stack, name: str, password: str = PASSWORD) -> Browser:
    person = Browser(stack)
    assert str(person.login(name, password).url).endswith("/hub/home")
    return person


def test_a_copied_cookie_does_not_survive_the_logout_of_its_browser(stack):
    stack.add("ann")
    here, elsewhere = logged_in(stack, "ann"), logged_in(stack, "ann")
    copied = copy_of(stack, here)
    assert is_in(copied)
    here.get("/hub/logout")
    assert not is_in(copied)
    assert not is_in(here.http)
    assert is_in(elsewhere.http)  # another browser of the same person


def test_a_cookie_of_the_previous_login_ends_with_the_next_users_login(stack):
    stack.add("bob")
    stack.add("cat")
    shared = logged_in(stack, "bob")
    copied = copy_of(stack, shared)
    shared.login("cat")
    assert not is_in(copied)


def test_a_page_elsewhere_logs_nobody_out(stack):
    stack.add("lia")
    here = logged_in(stack, "lia")
    foreign = {
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Dest": "document",
        "Referer": "https://evil.example/",
    }
    asked = here.get("/hub/logout", headers=foreign)
    assert (asked.status_code, 'id="mlp-logout"' in asked.text) == (200, True)
    picture = {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Dest": "image", "Sec-Fetch-Mode": "no-cors"}
    here.get("/hub/logout", headers={**picture, "Referer": f"{stack.notebooks('lia')}/user/lia/lab"})
    assert is_in(here.http)
    here.get("/hub/logout", headers={"Sec-Fetch-Site": "same-origin"})
    assert not is_in(here.http)


def change(stack, name: str, here: Browser) -> None:
    done = here.post(PAGE, PAGE, FIELDS)
    assert "is changed" in text_of(done)


def everywhere(stack, name: str, here: Browser) -> None:
    done = here.post(PAGE, "/hub/logout-everywhere", {})
    assert "logged out everywhere but here" in text_of(done)


def reset_by_api(stack, name: str, here: Browser) -> None:
    assert stack.api("POST", f"/mlp/accounts/{name}/password", json={"password": NEW}).status_code == 200


def logout_by_api(stack, name: str, here: Browser) -> None:
    assert stack.api("POST", f"/mlp/accounts/{name}/logout").status_code == 200


def reset_by_page(stack, name: str, here: Browser) -> None:
    stack.add(f"boss-{name}", admin=True)
    boss = logged_in(stack, f"boss-{name}")
    page = f"{PAGE}/{name}"
    assert "The password is set" in text_of(boss.post(page, page, FIELDS))
    assert is_in(boss.http)


@pytest.mark.parametrize(
    ("act", "password", "stays"),
    [
        (change, NEW, True),
        (everywhere, PASSWORD, True),
        (reset_by_api, NEW, False),
        (reset_by_page, NEW, False),
        (logout_by_api, PASSWORD, False),
    ],
)
def test_all_that_is_open_ends(stack, act, password, stays):
    name = act.__name__.replace("_", "-")
    stack.add(name)
    here, elsewhere = logged_in(stack, name), logged_in(stack, name)
    for person in (here, elsewhere):  # and into the platform's pages, by OAuth
        person.get("/services/mlp/login")
    copied = copy_of(stack, here)
    token = user_token(stack, name)
    pages = [t for t in stack.api("GET", f"/users/{name}/tokens").json()["api_tokens"] if t["session_id"]]
    assert len(pages) == 2
    assert stack.api("GET", "/user", token).status_code == 200
    act(stack, name, here)
    assert not is_in(copied)
    assert not is_in(elsewhere.http)
    assert is_in(here.http) is stays
    assert stack.api("GET", "/user", token).status_code == 403
    assert stack.api("GET", f"/users/{name}/tokens").json()["api_tokens"] == []
    again = logged_in(stack, name, password)
    # the page that came after it can be used
    if stays:
        page = here.post(PAGE, "/hub/logout-everywhere", {})
        assert page.status_code == 200
        assert not is_in(again.http)


def test_a_notebook_server_ends_with_its_sessions_and_the_page_says_so_before(stack):
    stack.add("dan")
    token = start_server(stack, "dan", cpu=0.1, ram=256)
    here = logged_in(stack, "dan")
    assert here.get("/user/dan/lab").status_code == 200  # by OAuth, with a cookie of the server's own
    copied = copy_of(stack, here)
    lab = f"{stack.notebooks('dan')}/user/dan/lab"
    assert copied.get(lab, follow_redirects=False).status_code == 200
    said = text_of(here.get(PAGE))
    assert "a running notebook server is stopped: save your notebooks first. Jobs continue." in said
    assert "stops your notebook servers" in said
    change(stack, "dan", here)
    assert copied.get(lab, follow_redirects=False).status_code != 200
    assert stack.api("GET", "/user", token).status_code == 403
    assert stack.api("GET", "/users/dan").json()["servers"] == {}
    assert "Start" in text_of(here.get("/hub/home"))


def test_an_administrator_stops_a_notebook_server_and_the_sessions_stay(stack):
    stack.add("fay")
    start_server(stack, "fay", cpu=0.1, ram=256)
    here = logged_in(stack, "fay")
    assert stack.api("GET", "/mlp/accounts/fay").json()["servers"] == 1
    assert stack.api("POST", "/mlp/accounts/fay/stop").json()["servers"] == 0
    wait_for(lambda: stack.api("GET", "/users/fay").json()["servers"] == {})
    assert is_in(here.http)


def test_an_administrator_changes_the_own_password_only_by_knowing_it(stack):
    stack.add("gil", admin=True)
    gil = logged_in(stack, "gil")
    refused = gil.post(PAGE, f"{PAGE}/gil", FIELDS)
    assert refused.status_code == 403
    token = user_token(stack, "gil", "admin:users")
    refused = stack.api("POST", "/mlp/accounts/gil/password", token, json={"password": NEW})
    assert refused.status_code == 403
    assert "asks for the present one" in refused.json()["msg"]
    logged_in(stack, "gil")


@pytest.mark.parametrize("body", [{}, {"password": "short"}, {"password": 5}, []])
def test_a_reset_to_an_invalid_password_changes_and_ends_nothing(stack, body):
    if not any(a["name"] == "hal" for a in stack.api("GET", "/mlp/accounts").json()):
        stack.add("hal")
    here = logged_in(stack, "hal")
    assert stack.api("POST", "/mlp/accounts/hal/password", json=body).status_code == 400
    assert is_in(here.http)


def test_a_foreign_page_cannot_log_anybody_out_everywhere(stack):
    stack.add("ida")
    here = logged_in(stack, "ida")
    assert here.http.post("/hub/logout-everywhere").status_code == 403  # without the page's XSRF token
    assert here.get("/hub/logout-everywhere").status_code == 200
    assert is_in(here.http)

"""What pages of a hostile notebook server can do to who opens them, in a real browser: nothing of the platform's.

`mal` has put a program into the own server that asks nobody for a login. Victims are `bob`, whose server runs, and the
administrator; both are logged in everywhere, and open a link.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from mlp_hub import sandbox
from support.front.browser import chromium, log_in, new_context, open_lab
from support.hubs.hostile_server import lay_into
from support.hubs.live_hub import PASSWORD, LiveHub
from support.local_names import LocalNames
from support.waiting import PATIENCE_S, wait_for

pytestmark = pytest.mark.skipif(sandbox.capabilities().mode is None, reason="no sandbox can be made here")
API = "/services/mlp/api/v1"
ASK = """
async ([url, options]) => {
  try {
    const answer = await fetch(url, {credentials: "include", ...options});
    return {status: answer.status, type: answer.type, text: (await answer.text()).slice(0, 2000)};
  } catch (error) {
    return {status: 0, type: "error", text: String(error)};
  }
}
"""
FRAME = """
(url) => new Promise((done) => {
  const frame = document.createElement("iframe");
  frame.onload = () => {
    let seen = "";
    try { seen = frame.contentDocument.documentElement.outerHTML; } catch (error) { seen = "closed"; }
    setTimeout(() => done(seen), 300);
  };
  frame.src = url;
  document.body.append(frame);
})
"""
SOCKET = """
(url) => new Promise((done) => {
  const socket = new WebSocket(url);
  socket.onopen = () => done("open");
  socket.onclose = (event) => done(`closed ${event.code}`);
})
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


def server(hub: LiveHub, user: str, *, on: bool) -> None:
    """Start or stop a user's notebook server."""
    headers = {"Authorization": f"Bearer {hub.token(user)}"}
    hub.http.request("POST" if on else "DELETE", f"/hub/api/users/{user}/server", headers=headers)

    def there() -> bool:
        found = hub.http.get(f"/hub/api/users/{user}", headers=headers).json()["servers"].get("")
        return bool(found and found["ready"]) if on else found is None

    wait_for(there, 90, 0.2, f"for the server of {user}")


@pytest.fixture(scope="module")
def trap(hub: LiveHub) -> Iterator[str]:
    """A link that mal sends around."""
    hub.add_user("mal")
    server(hub, "mal", on=True)
    lay_into(hub.home / "homes" / "mal")
    server(hub, "mal", on=False)
    server(hub, "mal", on=True)
    yield f"{hub.notebooks('mal')}/user/mal/free"
    server(hub, "mal", on=False)


def seen_by_mal(hub: LiveHub) -> list[dict[str, Any]]:
    with httpx.Client(transport=LocalNames(), trust_env=False) as client:
        found: list[dict[str, Any]] = client.get(f"{hub.notebooks('mal')}/user/mal/seen").json()
        return found


@pytest.fixture(scope="module")
def bob(hub: LiveHub, browser: Browser, trap: str) -> Iterator[BrowserContext]:
    """Bob's browser: logged in to the hub, to the pages of the platform, and to his own notebook server."""
    context = new_context(browser)
    page = context.new_page()
    log_in(page, hub, "bob")
    page.goto(f"{hub.url}/services/mlp/")
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
    open_lab(page, hub, "bob")
    page.close()
    yield context
    context.close()


@pytest.fixture(scope="module")
def admin(hub: LiveHub, browser: Browser) -> Iterator[BrowserContext]:
    context = new_context(browser)
    page = context.new_page()
    log_in(page, hub, "admin", hub.admin_password)
    page.goto(f"{hub.url}/services/mlp/admin/users")
    expect(page.get_by_role("heading", name="Users")).to_be_visible()
    page.close()
    yield context
    context.close()


@pytest.fixture(params=["bob", "admin"])
def victim(request: pytest.FixtureRequest) -> tuple[str, BrowserContext]:
    return request.param, request.getfixturevalue(request.param)


def lured(context: BrowserContext, trap: str) -> Page:
    page = context.new_page()
    page.goto(trap)
    expect(page.get_by_role("heading", name="Look at this notebook")).to_be_visible()
    return page


def ask(page: Page, url: str, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate(ASK, [url, options])
    return found


def tokens(hub: LiveHub, user: str) -> set[str]:
    """The tokens of a user that are no sessions of a browser."""
    headers = {"Authorization": f"Bearer {hub.token('admin')}"}
    answer = hub.http.get(f"/hub/api/users/{user}/tokens", headers=headers)
    assert answer.status_code == 200, answer.text
    return {t["id"] for t in answer.json()["api_tokens"] if t["oauth_client"] == "JupyterHub"}


def test_one_opened_link_is_neither_a_token_nor_a_job(
    hub: LiveHub, trap: str, victim: tuple[str, BrowserContext]
) -> None:
    name, context = victim
    hub.token("admin")
    hub.token(name)
    before = tokens(hub, name)
    assert before, "the test's own"
    page = lured(context, trap)
    for base in (hub.url, f"http://127.0.0.1:{hub.port}", ""):
        # the way that once worked: a session begun in a hidden frame, its XSRF token, a token, a job
        page.evaluate(FRAME, f"{base}/services/mlp/login?next=/services/mlp/")
        for path in (
            f"{API}/session",
            f"{API}/users/{name}/token",
            "/hub/api/user",
            "/hub/token",
            "/hub/home",
        ):
            found = ask(page, f"{base}{path}")
            assert found["status"] in (0, 421), (base, path, found)
        job = {"name": "pwned", "code": "print(1)"}
        for headers in ({"Content-Type": "application/json"}, {"Content-Type": "text/plain"}):
            for mode in ("cors", "no-cors"):
                ask(
                    page,
                    f"{base}{API}/users/{name}/jobs",
                    method="POST",
                    mode=mode,
                    headers=headers,
                    body=json.dumps(job),
                )
                ask(
                    page,
                    f"{base}/hub/api/users/{name}/tokens",
                    method="POST",
                    mode=mode,
                    headers=headers,
                    body="{}",
                )
    page.close()
    assert hub.call("GET", f"/users/{name}/jobs/pwned", name).status_code == 403, "there is no such job"
    assert tokens(hub, name) == before


def test_a_form_sent_from_there_does_nothing(hub: LiveHub, trap: str, admin: BrowserContext) -> None:
    page = lured(admin, trap)
    for target in (
        f"{API}/tenants/default",
        "/hub/api/users/bob",
        "/hub/change-password/bob",
        "/hub/confirm",
    ):
        page.goto(trap)
        with page.expect_navigation():
            page.evaluate(
                """(url) => {
                  const form = document.createElement("form");
                  form.method = "post"; form.action = url; form.enctype = "text/plain";
                  const field = document.createElement("input");
                  field.name = '{"cpu": 0, "a": "'; field.value = '"}';
                  form.append(field); document.body.append(form); form.submit();
                }""",
                f"{hub.url}{target}",
            )
        text = page.locator("body").inner_text()
        assert "403" in text or "401" in text or "valid token" in text or "Log in" in text, (target, text)
    page.close()
    assert hub.ok("GET", "/users/bob")["state"] == "Actived"


def test_a_hostile_server_sees_no_cookie_of_the_platform(
    hub: LiveHub, trap: str, victim: tuple[str, BrowserContext]
) -> None:
    _, context = victim
    page = lured(context, trap)
    page.evaluate(FRAME, trap)
    ask(page, trap, method="POST")
    page.close()
    platform = {c["name"] for c in context.cookies(hub.url)}
    assert {c.rpartition("-")[0] or c for c in platform} >= {"__Host-jupyterhub-hub", "__Host-mlp-session"}
    assert all(c["domain"] == "localhost" for c in context.cookies(hub.url)), "host-only"
    names = {part.partition("=")[0].strip() for row in seen_by_mal(hub) for part in row["cookie"].split(";")}
    assert not names & platform
    assert not [n for n in names if "session" in n or "hub-login" in n or "recent" in n], names


@pytest.mark.parametrize("by", ["script", "header"])
def test_a_users_page_plants_no_cookie_on_the_platform_or_on_another_user(
    hub: LiveHub, trap: str, bob: BrowserContext, by: str
) -> None:
    mine, others = hub.url, hub.notebooks("bob")
    before = [sorted(c["name"] for c in bob.cookies(url)) for url in (mine, others)]
    planted = [
        f"{name}=evil; Path={path}; Domain={domain}{safe}"
        for name in ("_xsrf", "jupyterhub-session-id", "jupyterhub-hub-login", f"mlp-session-{hub.port}")
        for path in ("/", "/hub/", "/services/mlp/", "/user/bob/")
        for domain in ("localhost", ".localhost", "bob.localhost")
        for safe in ("", "; Secure")
    ]
    planted += [f"__Host-jupyterhub-hub-login=evil; Path=/; Secure; Domain={d}" for d in ("localhost", "")]
    planted += [f"flood-{n}={'x' * 3000}; Path=/; Domain=localhost" for n in range(40)]
    page = lured(bob, trap)
    if by == "script":
        page.evaluate("(lines) => lines.forEach((line) => { document.cookie = line; })", planted)
    else:
        for line in planted:
            page.goto(str(httpx.URL(trap).copy_merge_params({"plant": line})))
    page.close()
    assert [sorted(c["name"] for c in bob.cookies(url)) for url in (mine, others)] == before
    page = bob.new_page()
    page.goto(f"{hub.url}/hub/home")
    assert page.url == f"{hub.url}/hub/home"
    expect(page.locator("body")).to_contain_text("bob")
    page.goto(f"{hub.url}/services/mlp/quota")
    expect(page.locator(".mlp-who")).to_have_text("bob")
    page.close()


def test_no_socket_opens_from_there(hub: LiveHub, trap: str, bob: BrowserContext) -> None:
    hub.submit("bob", "watched", "import time; time.sleep(600)", cpu=0.1, ram=100)
    page = lured(bob, trap)
    stream = "/users/bob/jobs/watched:stream?since=0"
    kernels = json.loads(_of_bob(hub, "GET", "/user/bob/api/kernels").text)
    kernel = kernels[0]["id"] if kernels else _of_bob(hub, "POST", "/user/bob/api/kernels").json()["id"]
    for url in (
        f"{hub.url}{API}{stream}",
        f"http://127.0.0.1:{hub.port}{API}{stream}",
        f"{hub.notebooks('mal')}{API}{stream}",
        f"{hub.notebooks('bob')}/user/bob/mlp/api/v1{stream}",
        f"{hub.notebooks('bob')}/user/bob/api/kernels/{kernel}/channels",
        f"{hub.notebooks('mal')}/user/bob/mlp/api/v1{stream}",
    ):
        assert page.evaluate(SOCKET, url.replace("http", "ws", 1)).startswith("closed"), url
    page.close()
    hub.ok("PUT", "/users/bob/jobs/watched:cancel", "bob")


def _of_bob(hub: LiveHub, method: str, path: str) -> httpx.Response:
    with httpx.Client(transport=LocalNames(), trust_env=False, timeout=PATIENCE_S) as client:
        headers = {"Authorization": f"token {hub.token('bob')}"}
        return client.request(method, f"{hub.notebooks('bob')}{path}", headers=headers)


def test_another_users_server_does_nothing_for_it(hub: LiveHub, trap: str, bob: BrowserContext) -> None:
    before = {k["id"] for k in _of_bob(hub, "GET", "/user/bob/api/kernels").json()}
    page = lured(bob, trap)
    theirs = hub.notebooks("bob")
    for path in ("/user/bob/api/contents", "/user/bob/mlp/api/v1/session", "/user/bob/lab"):
        assert ask(page, f"{theirs}{path}")["status"] == 0, path
    for mode in ("cors", "no-cors"):
        ask(page, f"{theirs}/user/bob/api/kernels", method="POST", mode=mode, body="{}")
        ask(page, f"{theirs}/user/bob/mlp/api/v1/users/bob/jobs/watched", method="DELETE", mode=mode)
    page.close()
    assert {k["id"] for k in _of_bob(hub, "GET", "/user/bob/api/kernels").json()} == before


@pytest.mark.parametrize(
    "path",
    [
        "/hub/home",
        "/hub/token",
        "/hub/confirm",
        "/services/mlp/",
        "/services/mlp/login",
        "/services/mlp/admin/users",
    ],
)
def test_no_page_of_ours_is_shown_in_a_frame(
    hub: LiveHub, trap: str, admin: BrowserContext, path: str
) -> None:
    page = lured(admin, trap)
    page.evaluate(FRAME, f"{hub.url}{path}")
    (frame,) = [f for f in page.frames if f != page.main_frame]
    while not frame.url:  # the error page is told to us after the frame's own load
        page.wait_for_event("framenavigated", lambda seen: seen == frame)
    assert frame.url.startswith("chrome-error:"), frame.url
    page.close()


def test_a_login_or_a_confirmed_password_never_leads_to_a_users_page(
    hub: LiveHub, browser: Browser, trap: str
) -> None:
    context = new_context(browser)
    page = context.new_page()
    host = httpx.URL(trap).netloc.decode()
    for wanted in (
        trap,
        f"//{host}/user/mal/free",
        f"/\\{host}/user/mal/free",
        f"///{host}/x",
        f"https:{host}/x",
    ):
        context.clear_cookies()
        page.goto(f"{hub.url}/hub/login?{httpx.QueryParams({'next': wanted})}")
        page.locator("#username_input").fill("bob")
        page.locator("#password_input").fill(PASSWORD)
        page.locator("#login_submit").click()
        page.wait_for_url(lambda url: "/hub/login" not in url)
        assert httpx.URL(page.url).host in ("localhost", "bob.localhost"), (wanted, page.url)
        page.goto(f"{hub.url}/hub/confirm?{httpx.QueryParams({'next': wanted})}")
        page.locator("#password_input").fill(PASSWORD)
        page.locator("#confirm_submit").click()
        expect(page.locator("#mlp-confirm-done")).to_be_visible()
        assert httpx.URL(page.url).host == "localhost", (wanted, page.url)
        page.goto(f"{hub.url}/services/mlp/login?{httpx.QueryParams({'next': wanted})}")
        assert page.url.startswith(f"{hub.url}/services/mlp/"), (wanted, page.url)
    context.close()


def test_a_token_is_made_by_a_click_after_the_password(hub: LiveHub, browser: Browser) -> None:
    context = new_context(browser)
    page = context.new_page()
    log_in(page, hub, "bob")
    recent = next(c for c in context.cookies(hub.url) if "mlp-recent" in c["name"])
    context.clear_cookies(name=recent["name"])  # as half an hour later
    page.goto(f"{hub.url}/services/mlp/quota")
    before = tokens(hub, "bob")
    refused = page.evaluate(
        """async () => {
          const xsrf = document.cookie;
          const asked = await fetch("/hub/api/users/bob/tokens", {method: "POST", body: "{}", headers: {"Content-Type": "application/json"}});
          return asked.status;
        }"""
    )
    assert refused == 403
    page.get_by_role("link", name="Make a token").click()
    expect(page.get_by_role("heading", name="Your password, bob")).to_be_visible()
    page.locator("#password_input").fill("not the password")
    page.locator("#confirm_submit").click()
    expect(page.locator("#mlp-confirm-error")).to_contain_text("not right")
    page.locator("#password_input").fill(PASSWORD)
    page.locator("#confirm_submit").click()
    page.wait_for_url("**/hub/token")
    page.wait_for_function(
        "() => window._jupyterhub_page_loaded"
    )  # before it the button only loads the page anew
    assert tokens(hub, "bob") == before, "nothing was made yet"
    page.get_by_label("Purpose").fill("a program")
    page.get_by_role("button", name="Request new API token").click()
    expect(page.locator("#token-result")).not_to_be_empty()
    assert len(tokens(hub, "bob") - before) == 1
    context.close()


def test_a_page_without_a_recent_login_changes_nothing_at_the_hub_even_with_its_own_xsrf_token(
    hub: LiveHub, browser: Browser
) -> None:
    """What a script could do that runs in a page of the hub's own."""
    context = new_context(browser)
    page = context.new_page()
    log_in(page, hub, "admin", hub.admin_password)
    page.goto(f"{hub.url}/hub/home")
    recent = next(c for c in context.cookies(hub.url) if "mlp-recent" in c["name"])
    context.clear_cookies(name=recent["name"])
    for method, path, body in (
        ("POST", "/hub/api/users/admin/tokens", "{}"),
        ("POST", "/hub/api/users", '{"usernames": ["intruder"]}'),
        ("POST", "/hub/api/users/intruder", "{}"),
        ("PATCH", "/hub/api/users/bob", '{"admin": true}'),
        ("DELETE", "/hub/api/users/bob", None),
        ("DELETE", "/hub/api/mlp/accounts/bob", None),
        ("POST", "/hub/api/mlp/accounts", '{"name": "intruder", "password": "correct horse battery"}'),
        ("POST", "/hub/api/mlp/accounts/bob/deauthorize", "{}"),
    ):
        found = page.evaluate(
            """async ([method, path, body]) => {
              const xsrf = window.jhdata.xsrf_token;
              const headers = {"Content-Type": "application/json", "X-XSRFToken": xsrf};
              const answer = await fetch(path, {method, body: body ?? undefined, headers});
              return [answer.status, await answer.text()];
            }""",
            [method, path, body],
        )
        assert found[0] == 403, (method, path, found)
        assert "/hub/confirm" in found[1] or "people are managed in the panel" in found[1], (
            method,
            path,
            found,
        )
    context.close()
    people = {u["username"]: u for u in hub.ok("GET", "/users")}
    assert "intruder" not in people
    assert (people["bob"]["state"], people["bob"]["admin"]) == ("Actived", False)

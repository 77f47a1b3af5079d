"""Pages of apps live on origins of their own: how a browser gets there, and what an app cannot do from there."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from support.proxy.gateway_rig import PREFIX, GatewayRig
from support.waiting import PATIENCE_S, wait_for

APP = f"{PREFIX}/ann/shop"
PAGE = {"Accept": "text/html,*/*", "Sec-Fetch-Dest": "document", "Sec-Fetch-Mode": "navigate"}
REFUSED_PAGE = "This app does not exist"


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayRig]:
    with GatewayRig(Path(tmp_path_factory.mktemp("p")), key_rate=0.01, tenant_rate=1000, wake_s=60) as rig:
        rig.tenant("red", "rita", members=("ann",))
        rig.tenant("blue", "blue", members=("bob",))
        rig.stand_in("ann", "shop", "red")
        rig.stand_in("ann", "other", "red")
        yield rig


@pytest.fixture(scope="module")
def cookie(rig: GatewayRig) -> str:
    """What ann's browser has at the app's own origin."""
    return rig.enter("ann", rig.ann, "ann", "shop")


def own(rig: GatewayRig) -> str:
    return rig.host("ann", "shop")


def test_a_browser_is_led_to_the_apps_own_origin_by_a_code_that_is_good_once(rig: GatewayRig) -> None:
    _, session = rig.session("ann", rig.ann)
    led = rig.visit(f"{APP}/cart/2?a=1&b=2", Cookie=session["Cookie"], **PAGE)
    assert led.status == 302
    to = urlsplit(led.headers["location"])
    # first to the app's own origin, where it gets what its code will be bound to
    assert (to.netloc, to.path) == (own(rig), "/_mlp/enter")
    assert parse_qs(to.query) == {"next": ["/cart/2?a=1&b=2"]}
    begun = rig.visit(f"{to.path}?{to.query}", host=own(rig), **PAGE)
    way = begun.headers["set-cookie"]
    assert way.startswith("__Host-mlp-app-way=")
    assert {"HttpOnly", "Secure", "SameSite=Lax", "Path=/"} <= {part.strip() for part in way.split(";")}
    way = way.partition(";")[0]
    assert way.partition("=")[2] not in begun.headers["location"]
    hub = begun.headers["location"].removeprefix(rig.platform_url)
    to = urlsplit(rig.visit(hub, Cookie=session["Cookie"], **PAGE).headers["location"])
    path = f"{to.path}?{to.query}"
    # at another app's origin the code is worth nothing, and is used up
    assert rig.visit(path, host=rig.host("ann", "other"), Cookie=way, **PAGE).status == 403
    assert rig.visit(path, host=own(rig), Cookie=way, **PAGE).status == 403
    path, _ = rig.way(session["Cookie"], "ann", "shop", "/cart/2?a=1&b=2", way)
    entered = rig.visit(path, host=own(rig), Cookie=way, **PAGE)
    assert (entered.status, entered.headers["location"]) == (302, "/cart/2?a=1&b=2")
    set_cookie = entered.headers["set-cookie"]
    assert set_cookie.startswith("__Host-mlp-app=")
    assert {"HttpOnly", "Secure", "SameSite=Lax", "Path=/"} <= {
        part.strip() for part in set_cookie.split(";")
    }
    assert "domain" not in set_cookie.lower()
    assert rig.visit(path, host=own(rig), Cookie=way, **PAGE).status == 403
    page = rig.visit("/cart/2?a=1&b=2", host=own(rig), Cookie=set_cookie.partition(";")[0], **PAGE)
    assert page.json["path"] == "/cart/2?a=1&b=2"
    assert page.json["headers"]["x-mlp-user"] == "ann"
    assert "x-forwarded-prefix" not in page.json["headers"]


@pytest.mark.parametrize(
    "away", ["//evil.example/", "https://evil.example/", "/\\evil.example", "x", "/_mlp/enter?code=1"]
)
def test_the_way_in_leads_to_nobody_else(rig: GatewayRig, away: str) -> None:
    _, session = rig.session("ann", rig.ann)
    path, way = rig.way(session["Cookie"], "ann", "shop")
    code = parse_qs(urlsplit(path).query)["code"][0]
    entered = rig.visit(f"/_mlp/enter?code={code}&next={quote(away)}", host=own(rig), Cookie=way, **PAGE)
    assert (entered.status, entered.headers["location"]) == (302, "/")
    begun = rig.visit(f"/_mlp/enter?next={quote(away)}", host=own(rig), **PAGE)
    assert begun.headers["location"].startswith(f"{rig.platform_url}{PREFIX}/~/")
    assert begun.headers["location"].endswith("/")
    assert "evil" not in begun.headers["location"]


def test_nobody_is_led_into_an_app_as_somebody_else(rig: GatewayRig) -> None:
    """A code of ann's, in an address that another browser is made to open."""
    _, session = rig.session("ann", rig.ann)
    path, way = rig.way(session["Cookie"], "ann", "shop")
    _, other = rig.way(session["Cookie"], "ann", "shop")
    assert other != way
    for cookie in ("", other, "__Host-mlp-app-way=", "__Host-mlp-app-way=" + "x" * 43, "mlp-app-way=" + way):
        refused = rig.visit(path, host=own(rig), Cookie=cookie or "a=b", **PAGE)
        assert refused.status == 403, cookie
        assert "set-cookie" not in refused.headers
        assert "Open the app again" in refused.body.decode()
    assert rig.visit(path, host=own(rig), Cookie=way, **PAGE).status == 302  # and none of that used it up


def test_a_strangers_way_in_stores_nothing(rig: GatewayRig, monkeypatch: pytest.MonkeyPatch) -> None:
    _, session = rig.session("ann", rig.ann)
    path, way = rig.way(session["Cookie"], "ann", "shop")
    written: list[object] = []
    write = rig.rig.db.write

    async def watched(work: Any, **how: Any) -> Any:
        written.append(work)
        return await write(work, **how)

    monkeypatch.setattr(rig.rig.db, "write", watched)
    for n in range(20):
        forged = f"/_mlp/enter?code={n:043d}"
        assert rig.visit(forged, host=own(rig), Cookie=way, **PAGE).status == 403
        assert rig.visit(forged, host=own(rig), **PAGE).status == 403
        assert rig.visit("/_mlp/enter?next=/", host=own(rig), **PAGE).status == 302
        assert rig.visit(f"{PREFIX}/~/{own(rig).split('.')[0]}~{n:043d}/", **PAGE).status == 302  # to log in
    visits = [
        work for work in written if "app_visits" in getattr(work, "__qualname__", "") or "enter" in str(work)
    ]
    assert not visits
    assert rig.visit(path, host=own(rig), Cookie=way, **PAGE).status == 302
    assert len(written) > len(visits)


def test_nothing_of_an_app_is_ever_a_page_of_the_hubs_own_origin(rig: GatewayRig, cookie: str) -> None:
    asked = len(rig.stand_ins[0].asked)
    _, session = rig.session("ann", rig.ann)
    both = f"{session['Cookie']}; {cookie}"
    assert rig.visit(f"{APP}/", Cookie=both, **PAGE).status == 302
    assert rig.visit(f"{APP}/", Cookie=both, Accept="*/*").status == 401
    assert rig.visit(f"{APP}/", Cookie=both, method="POST", body=b"x").status == 401
    framed = rig.visit(f"{APP}/", Cookie=both, **{**PAGE, "Sec-Fetch-Dest": "iframe"})
    assert framed.status == 403
    assert len(rig.stand_ins[0].asked) == asked


def test_an_anonymous_browser_is_sent_to_the_login_and_an_unauthorized_user_learns_nothing(
    rig: GatewayRig,
) -> None:
    stranger = rig.visit(f"{APP}/", **PAGE)
    assert stranger.status == 302
    assert stranger.headers["location"].startswith("/services/mlp/login?next=")
    _, session = rig.session("bob", rig.bob)
    seen = [
        rig.visit(f"{PREFIX}/{app}/", Cookie=session["Cookie"], **PAGE) for app in ("ann/shop", "ann/none")
    ]
    assert [answer.status for answer in seen] == [404, 404]
    foreign, missing = (
        answer.body.replace(answer.headers["x-request-id"].encode(), b"ID") for answer in seen
    )
    assert foreign == missing
    assert REFUSED_PAGE in foreign.decode()


def test_a_browser_that_opens_a_served_model_is_shown_how_to_ask_it(rig: GatewayRig) -> None:
    rig.stand_in("ann", "net", "red", command="")
    _, session = rig.session("ann", rig.ann)
    led = rig.visit(f"{PREFIX}/ann/net/", Cookie=session["Cookie"], **PAGE)
    assert (led.status, led.headers["location"]) == (302, "/services/mlp/app/ann/net#ask")
    begun = rig.visit("/", host=rig.host("ann", "net"), **PAGE)
    past = rig.visit(
        begun.headers["location"].removeprefix(rig.platform_url), Cookie=session["Cookie"], **PAGE
    )
    assert past.headers["location"] == "/services/mlp/app/ann/net#ask"
    deeper = rig.visit(f"{PREFIX}/ann/net/v2", Cookie=session["Cookie"], **PAGE)
    assert urlsplit(deeper.headers["location"]).netloc == rig.host("ann", "net")
    _, stranger = rig.session("bob", rig.bob)
    assert rig.visit(f"{PREFIX}/ann/net/", Cookie=stranger["Cookie"], **PAGE).status == 404


def test_without_a_cookie_the_apps_origin_sends_a_browser_past_the_hub(rig: GatewayRig) -> None:
    led = rig.visit("/deep/er?q=1", host=own(rig), **PAGE)
    assert led.status == 302
    to = led.headers["location"]
    assert to.startswith(f"{rig.platform_url}{PREFIX}/~/")
    _, session = rig.session("ann", rig.ann)
    back = rig.visit(to.removeprefix(rig.platform_url), Cookie=session["Cookie"], **PAGE)
    assert urlsplit(back.headers["location"]).netloc == own(rig)
    assert parse_qs(urlsplit(back.headers["location"]).query)["next"] == ["/deep/er?q=1"]
    assert rig.visit("/x", host=own(rig), Accept="application/json").status == 401
    # and nothing of the platform's is under this name
    assert rig.visit("/services/mlp/api/v1/health", host=own(rig)).status == 401
    assert rig.visit("/hub/api", host=own(rig)).status == 401


def test_a_cookie_is_of_one_app_and_ends_with_the_session(rig: GatewayRig) -> None:
    session, headers = rig.session("ann", rig.ann)
    path, way = rig.way(headers["Cookie"], "ann", "shop")
    entered = rig.visit(path, host=own(rig), Cookie=way, **PAGE)
    cookie = entered.headers["set-cookie"].partition(";")[0]
    assert rig.visit("/", host=own(rig), Cookie=cookie).status == 200
    assert rig.visit("/", host=rig.host("ann", "other"), Cookie=cookie).status == 401
    rig.run(rig.service.sessions.end(session.id))
    wait_for(
        lambda: rig.visit("/", host=own(rig), Cookie=cookie).status == 401, message="for the visit to end"
    )


def test_the_app_gets_its_own_cookies_and_sets_them_for_itself_alone(rig: GatewayRig, cookie: str) -> None:
    def plants(handler: Any) -> None:
        handler.send_response(200)
        for line in (
            "plain=1",
            "parent=1; Domain=localhost; Path=/",
            "odd=1; domain = .localhost ; HttpOnly",
            "__Host-mlp-app=stolen; Path=/; Secure",
            "mlp-session=x",
            "__Host-jupyterhub-session-id=x",
        ):
            handler.send_header("Set-Cookie", line)
        handler.send_header("Strict-Transport-Security", "max-age=9")
        handler.send_header("Clear-Site-Data", '"*"')
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    rig.stand_ins[0].paths["/plants"] = plants
    answer = rig.visit("/plants", host=own(rig), Cookie=cookie)
    assert answer.headers["set-cookie"].split("\n") == ["plain=1", "parent=1; Path=/", "odd=1; HttpOnly"]
    assert not {"strict-transport-security", "clear-site-data"} & set(answer.headers)
    sent = rig.visit("/", host=own(rig), Cookie=f"a=1; {cookie}; mlp-session=2; b=3").json["headers"]
    assert sent["cookie"] == "a=1; b=3"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
    ],
)
def test_another_site_cannot_ask_in_a_visitors_name(
    rig: GatewayRig, cookie: str, headers: dict[str, str]
) -> None:
    asked = len(rig.stand_ins[0].asked)
    for method in ("GET", "POST"):
        assert rig.visit("/", host=own(rig), method=method, Cookie=cookie, **headers).status == 403
    assert len(rig.stand_ins[0].asked) == asked
    mine = {"Origin": f"http://{own(rig)}", "Sec-Fetch-Site": "same-origin"}
    assert rig.visit("/", host=own(rig), method="POST", Cookie=cookie, **mine).status == 200


def test_a_websocket_with_a_cookie_comes_from_the_apps_own_pages_alone(rig: GatewayRig, cookie: str) -> None:
    neighbour = rig.host("ann", "other")
    for origin, status in (
        (f"http://{own(rig)}", b"101"),
        (f"http://{neighbour}", b"403"),
        (rig.platform_url, b"403"),
        ("", b"403"),
    ):
        with socket.create_connection(("127.0.0.1", rig.proxy.port), PATIENCE_S) as plain:
            lines = ["GET /ws HTTP/1.1", f"Host: {own(rig)}", "Connection: Upgrade", "Upgrade: websocket"]
            lines += [f"Cookie: {cookie}", *([f"Origin: {origin}"] if origin else [])]
            plain.sendall("\r\n".join([*lines, "", ""]).encode())
            assert plain.recv(65536).split()[1] == status, origin


def test_a_key_with_too_many_requests_gets_a_retry_time(rig: GatewayRig) -> None:
    key = rig.key("ann", "shop", "eager", rig.ann)
    assert rig.visit(f"{APP}/", X_API_Key=key).status == 200
    refused = rig.visit(f"{APP}/", X_API_Key=key)
    assert refused.status == 429
    assert int(refused.headers["retry-after"]) > 0
    # who comes with a token is not held up by it
    assert rig.visit(f"{APP}/", Authorization=f"Bearer {rig.ann}").status == 200


def test_a_visitor_who_asks_without_end_locks_nobody_else_out(tmp_path: Path) -> None:
    with GatewayRig(tmp_path, visitor_rate=0.01, tenant_rate=1000) as rig:
        rig.tenant("red", "rita", members=("ann",))
        rig.stand_in("ann", "shop", "red")
        assert rig.ask("PUT", "/users/ann/apps/shop/access", {"access": "hub"}, token=rig.ann).status == 200
        bob = [rig.visit(f"{APP}/", Authorization=f"Bearer {rig.bob}").status for _ in range(3)]
        assert bob == [200, 429, 429]
        # of another tenant, of its own, and who has a key
        key = rig.key("ann", "shop", "calm", rig.ann)
        for headers in ({"Authorization": f"Bearer {rig.rita}"}, {"X-API-Key": key}):
            assert rig.visit(f"{APP}/", **headers).status == 200
        cookie = rig.enter("ann", rig.ann, "ann", "shop")
        assert rig.visit("/", host=own(rig), Cookie=cookie).status == 200
        # the same person by another door
        assert rig.visit(f"{APP}/", Authorization=f"Bearer {rig.ann}").status == 429


def test_request_counts_outlive_the_proxy_and_count_once(tmp_path: Path) -> None:
    with GatewayRig(tmp_path) as rig:
        rig.tenant("red", "rita", members=("ann",))
        rig.stand_in("ann", "shop", "red")
        mine = {"Authorization": f"Bearer {rig.ann}"}

        def usage(path: str = "/users/ann/apps/shop/usage") -> dict[str, Any]:
            found: dict[str, Any] = rig.ask("GET", path, token=rig.ann).json
            return found

        def kept() -> Any:
            return rig.run(rig.platform.app_usage.usage_of("app", rig.apps["ann", "shop"].uid))

        for _ in range(3):
            assert rig.visit(f"{APP}/", **mine).status == 200
        rig.proxy.stop(kill=False)  # told at its end, whatever it told before
        assert kept().total.requests == 3
        assert (usage()["requests"], usage()["open"]) == (3, 0)  # while there is no proxy
        rig.proxy.start()
        rig.lead_to_the_service()
        for _ in range(2):
            assert rig.visit(f"{APP}/", **mine).status == 200
        assert usage()["requests"] == 5  # what was told and what was not yet
        told = wait_for(
            lambda: (found := kept()) and found.total.requests == 5 and found, message="for the rest"
        )
        rig.proxy.stop(kill=True)
        found = usage()
        assert (found["requests"], sum(found["latency"])) == (5, 5)
        assert sum(one["requests"] for one in found["minutes"]) == 5
        assert found["since"] < found["last"]
        assert usage("/tenants/red/apps/usage")["requests"] == 5
        # the same again, and an older count that comes late
        path = "/services/mlp/api/v1/gateway:used"
        again = {
            "kind": "app",
            "name": rig.apps["ann", "shop"].uid,
            "run": told.run,
            "under_way": 0.0,
            **{name: getattr(told.counted, name) for name in ("since", "last", "requests", "errors")},
            **{
                name: getattr(told.counted, name)
                for name in ("bytes_in", "bytes_out", "bounds_ms", "latency")
            },
            "minutes": [],
        }
        for requests in (told.counted.requests, 0):
            body = {"counted": [{**again, "requests": requests}]}
            assert (
                rig.ask("PUT", path.removeprefix("/services/mlp/api/v1"), body, token=rig.gateway).status
                == 200
            )
        assert usage()["requests"] == 5


def test_an_app_that_sleeps_is_woken_and_answers_who_waited(rig: GatewayRig) -> None:
    rig.stand_in("ann", "sleepy", "red", least=0)
    ready = rig.apps["ann", "sleepy"]
    rig.put(ready._replace(state="waiting", replicas=()))
    woken: list[str] = []

    async def wake(uid: str) -> None:
        woken.append(uid)
        rig.platform.apps.endpoints.store_endpoint(ready)

    rig.platform.app_gate._wake = wake
    answer = rig.visit(f"{PREFIX}/ann/sleepy/", Authorization=f"Bearer {rig.ann}")
    assert answer.status == 200
    assert woken[0] == ready.uid


def test_known_callers_continue_while_the_service_is_away_and_all_others_are_refused(rig: GatewayRig) -> None:
    known = {"Authorization": f"Bearer {rig.ann}"}
    assert rig.visit(f"{APP}/", **known).status == 200
    rig.run(rig._unserve())
    try:
        for _ in range(3):
            assert rig.visit(f"{APP}/", **known).status == 200
        closed = rig.visit(f"{APP}/", Authorization=f"Bearer {rig.rita}")
        assert closed.status == 503
        assert closed.headers["retry-after"]
    finally:
        rig.run(rig._serve())
    wait_for(lambda: rig.visit(f"{APP}/", Authorization=f"Bearer {rig.rita}").status == 200)

"""Pages of apps live on origins of their own: how a browser gets there, and what an app cannot do from there."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from gateway_rig import PREFIX, GatewayRig
from waiting import PATIENCE_S, wait_for

APP = f"{PREFIX}/ann/shop"
PAGE = {"Accept": "text/html,*/*", "Sec-Fetch-Dest": "document", "Sec-Fetch-Mode": "navigate"}
REFUSED_PAGE = "There is no such app"


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
    assert to.netloc == own(rig)
    assert parse_qs(to.query)["next"] == ["/cart/2?a=1&b=2"]
    # at another app's origin the code is worth nothing, and is used up
    path = f"{to.path}?{to.query}"
    assert rig.visit(path, host=rig.host("ann", "other"), **PAGE).status == 403
    assert rig.visit(path, host=own(rig), **PAGE).status == 403
    to = urlsplit(rig.visit(f"{APP}/cart/2?a=1&b=2", Cookie=session["Cookie"], **PAGE).headers["location"])
    path = f"{to.path}?{to.query}"
    entered = rig.visit(path, host=own(rig), **PAGE)
    assert (entered.status, entered.headers["location"]) == (302, "/cart/2?a=1&b=2")
    set_cookie = entered.headers["set-cookie"]
    assert set_cookie.startswith("__Host-mlp-app=")
    assert {"HttpOnly", "Secure", "SameSite=Lax", "Path=/"} <= {
        part.strip() for part in set_cookie.split(";")
    }
    assert "domain" not in set_cookie.lower()
    assert rig.visit(path, host=own(rig), **PAGE).status == 403
    page = rig.visit("/cart/2?a=1&b=2", host=own(rig), Cookie=set_cookie.partition(";")[0], **PAGE)
    assert page.json["path"] == "/cart/2?a=1&b=2"
    assert page.json["headers"]["x-mlp-user"] == "ann"
    assert "x-forwarded-prefix" not in page.json["headers"]


@pytest.mark.parametrize(
    "away", ["//evil.example/", "https://evil.example/", "/\\evil.example", "x", "/_mlp/enter?code=1"]
)
def test_the_way_in_leads_to_nobody_else(rig: GatewayRig, away: str) -> None:
    _, session = rig.session("ann", rig.ann)
    to = urlsplit(rig.visit(f"{APP}/", Cookie=session["Cookie"], **PAGE).headers["location"])
    code = parse_qs(to.query)["code"][0]
    from urllib.parse import quote

    entered = rig.visit(f"{to.path}?code={code}&next={quote(away)}", host=own(rig), **PAGE)
    assert (entered.status, entered.headers["location"]) == (302, "/")


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


def test_who_is_not_logged_in_is_led_there_and_who_may_not_learns_nothing(rig: GatewayRig) -> None:
    stranger = rig.visit(f"{APP}/", **PAGE)
    assert stranger.status == 302
    assert stranger.headers["location"].startswith("/services/mlp/login?next=")
    _, session = rig.session("bob", rig.bob)
    seen = [
        rig.visit(f"{PREFIX}/{app}/", Cookie=session["Cookie"], **PAGE) for app in ("ann/shop", "ann/none")
    ]
    assert [answer.status for answer in seen] == [404, 404]
    assert seen[0].body == seen[1].body
    assert REFUSED_PAGE in seen[0].body.decode()


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
    to = urlsplit(rig.visit(f"{APP}/", Cookie=headers["Cookie"], **PAGE).headers["location"])
    entered = rig.visit(f"{to.path}?{to.query}", host=own(rig), **PAGE)
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


def test_who_asks_too_often_with_a_key_is_told_when_to_come_again(rig: GatewayRig) -> None:
    key = rig.key("ann", "shop", "eager", rig.ann)
    assert rig.visit(f"{APP}/", X_API_Key=key).status == 200
    refused = rig.visit(f"{APP}/", X_API_Key=key)
    assert refused.status == 429
    assert int(refused.headers["retry-after"]) > 0
    # who comes with a token is not held up by it
    assert rig.visit(f"{APP}/", Authorization=f"Bearer {rig.ann}").status == 200


def test_an_app_that_sleeps_is_woken_and_answers_who_waited(rig: GatewayRig) -> None:
    rig.stand_in("ann", "sleepy", "red", least=0)
    ready = rig.apps["ann", "sleepy"]
    rig.put(ready._replace(state="waiting", replicas=()))
    woken: list[str] = []

    async def wake(uid: str) -> None:
        woken.append(uid)
        rig.platform.apps.endpoints.put(ready)

    rig.platform.app_gate._wake = wake
    answer = rig.visit(f"{PREFIX}/ann/sleepy/", Authorization=f"Bearer {rig.ann}")
    assert answer.status == 200
    assert woken[0] == ready.uid


def test_what_is_known_goes_on_while_the_service_is_away_and_all_else_is_closed(rig: GatewayRig) -> None:
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

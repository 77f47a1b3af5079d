"""The gateway to apps: a real proxy and service before a stand-in app. Who gets in, what passes, and what does not."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.proxy.gateway_rig import PREFIX, GatewayRig, StandIn
from support.waiting import PATIENCE_S, wait_for

APP = f"{PREFIX}/ann/shop"


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayRig]:
    root = Path(tmp_path_factory.mktemp("g"))
    with GatewayRig(root, body_max=1, answer_s=3, wake_s=30) as rig:
        rig.tenant("red", "rita", members=("ann",))
        rig.tenant("blue", "blue", members=("bob",))
        rig.stand_in("ann", "shop", "red", replicas=2)
        rig.stand_in("ann", "other", "red")
        rig.stand_in("bob", "blues", "blue")
        yield rig


@pytest.fixture(scope="module")
def key(rig: GatewayRig) -> str:
    return rig.key("ann", "shop", "builds", rig.ann)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def shop(rig: GatewayRig) -> list[StandIn]:
    return [app for app in rig.stand_ins if app.path.name.startswith("ann-shop")]


# ---------------------------------------------------------------- who gets in


def test_every_verb_reaches_the_app_with_its_path_query_and_body(rig: GatewayRig, key: str) -> None:
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        body = None if method in ("GET", "OPTIONS") else b"x" * 1000
        answer = rig.visit(f"{APP}/a/b%20c?q=1&r=%2F", method=method, body=body, X_API_Key=key)
        assert answer.status == 200, answer.body
        assert answer.json["method"] == method
        assert answer.json["path"] == "/a/b%20c?q=1&r=%2F"
        assert answer.json["size"] == len(body or b"")
        assert answer.headers["content-security-policy"] == "sandbox"
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_owner_and_members_of_the_tenant_get_in_by_token_and_others_learn_nothing(rig: GatewayRig) -> None:
    assert rig.visit(f"{APP}/", **bearer(rig.ann)).json["headers"]["x-mlp-user"] == "ann"
    assert rig.visit(f"{APP}/", **bearer(rig.rita)).json["headers"]["x-mlp-user"] == "rita"
    foreign = rig.visit(f"{APP}/", **bearer(rig.bob))
    missing = rig.visit(f"{PREFIX}/ann/none/", **bearer(rig.bob))
    nobodys = rig.visit(f"{PREFIX}/nobody/none/", **bearer(rig.bob))
    assert foreign.status == missing.status == nobodys.status == 404
    assert foreign.body == missing.body == nobodys.body
    assert set(foreign.headers) == set(missing.headers)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ([{}, {"Authorization": "Basic eDp5"}], "Send a key of this app or a token of the hub"),
        (
            [bearer("mlpk_" + "x" * 43), {"X_API_Key": "mlpk_" + "y" * 43}, {"X_API_Key": "short"}],
            "The key is wrong, or it was revoked. The owner of the app makes one on the app's page",
        ),
        ([bearer("made-up")], "The token is wrong, or it has expired. Make one on the page My account"),
    ],
    ids=["nothing", "key", "token"],
)
def test_all_that_is_wrong_in_one_way_gets_the_same_answer_everywhere(
    rig: GatewayRig, sent: list[dict[str, str]], said: str
) -> None:
    answers = [rig.visit(f"{PREFIX}/ann/{name}/", **headers) for name in ("shop", "none") for headers in sent]
    assert {answer.status for answer in answers} == {401}
    assert len({answer.body for answer in answers}) == 1
    assert said in answers[0].body.decode()


def test_the_owner_of_an_app_decides_who_may_open_it(rig: GatewayRig) -> None:
    path = "/users/ann/apps/other/access"
    seen = {}
    for access in ("hub", "tenant", "private"):
        assert rig.ask("PUT", path, {"access": access}, token=rig.ann).status == 200

        def settled(access: str = access) -> list[int] | None:
            found = [
                rig.visit(f"{PREFIX}/ann/other/", **bearer(t)).status for t in (rig.ann, rig.rita, rig.bob)
            ]
            wanted = {"hub": [200, 200, 200], "tenant": [200, 200, 404], "private": [200, 404, 404]}
            return found if found == wanted[access] else None

        seen[access] = wait_for(settled, message=f"for {access} to hold")
    assert len(seen) == 3
    refused = rig.ask("PUT", path, {"access": "world"}, token=rig.ann)
    assert refused.status == 403
    assert rig.ask("PUT", path, {"access": "hub"}, token=rig.bob).status == 403


def test_a_key_opens_its_own_app_and_no_other_and_is_shown_once(rig: GatewayRig, key: str) -> None:
    assert rig.visit(f"{APP}/", **bearer(key)).status == 200
    assert rig.visit(f"{PREFIX}/ann/other/", **bearer(key)).status == 404
    assert rig.visit(f"{PREFIX}/ann/none/", **bearer(key)).status == 404
    listed = rig.ask("GET", "/users/ann/apps/shop/keys", token=rig.ann)
    assert key.encode() not in listed.body
    assert [(one["name"], one["made_by"], one["key"]) for one in listed.json] == [("builds", "ann", None)]
    used = wait_for(
        lambda: rig.ask("GET", "/users/ann/apps/shop/keys", token=rig.ann).json[0]["used_at"],
        message="for the last use to be known",
    )
    assert used
    again = rig.ask("POST", "/users/ann/apps/shop/keys", {"name": "builds"}, token=rig.ann)
    assert again.status == 403
    assert again.json["reason"] == "Conflict"
    for method, more in (("GET", ""), ("POST", ""), ("DELETE", "/builds")):
        body = {"name": "mine"} if method == "POST" else None
        assert rig.ask(method, f"/users/ann/apps/shop/keys{more}", body, token=rig.bob).status == 403


def test_a_revoked_key_ends_and_so_does_what_is_open_with_it(rig: GatewayRig) -> None:
    key = rig.key("ann", "shop", "brief", rig.ann)
    with upgraded(rig, {"X-API-Key": key}) as (open_one, answer):
        assert answer.startswith(b"HTTP/1.1 101 ")
        assert rig.ask("DELETE", "/users/ann/apps/shop/keys/brief", token=rig.ann).status == 200
        wait_for(lambda: rig.visit(f"{APP}/", X_API_Key=key).status == 401, message="for the key to end")
        assert read_end(open_one) == b""  # disconnected without a word of the app's
    missing = rig.ask("DELETE", "/users/ann/apps/shop/keys/brief", token=rig.ann)
    assert missing.json["reason"] == "NotFound"


def test_attack_guesses_keep_nothing_open_of_a_key_that_was_revoked(
    rig: GatewayRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = rig.key("ann", "shop", "guesses", rig.ann)
    take = rig.service.limiter.take_token
    with upgraded(rig, {"X-API-Key": key}) as (open_one, answer):
        assert answer.startswith(b"HTTP/1.1 101 ")
        monkeypatch.setattr(
            rig.service.limiter,
            "take_token",
            lambda bucket, who: 3 if bucket == "unknown-token" else take(bucket, who),
        )
        assert rig.ask("DELETE", "/users/ann/apps/shop/keys/guesses", token=rig.ann).status == 200
        wait_for(lambda: rig.visit(f"{APP}/", X_API_Key=key).status == 401, message="for the key to end")
        assert read_end(open_one) == b""


# ------------------------------------------------------------------ what passes


def test_the_app_sees_no_token_no_cookie_of_the_hub_and_no_forged_word(rig: GatewayRig, key: str) -> None:
    answer = rig.visit(
        f"{APP}/",
        Authorization=f"Bearer {key}",
        Cookie="__Host-jupyterhub-session-id=s; __Host-mlp-session-1=t; own=1",
        X_MLP_User="admin",
        X_Forwarded_For="9.9.9.9",
        Connection="X-Forwarded-For, X-MLP-Key, close",
        Forwarded="for=1.1.1.1",
        **{"X-MLP_User": "admin"},
    )
    seen = answer.json["headers"]
    assert key not in str(seen)
    assert not {"authorization", "x-api-key", "cookie", "x-mlp-user", "forwarded"} & set(seen)
    assert seen["x-mlp-key"] == "builds"
    assert seen["x-forwarded-for"] == "127.0.0.1"
    assert seen["x-forwarded-prefix"] == APP
    raw = rig.raw(
        f"GET {APP}/ HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\nX_MLP_User: admin\r\n"
        "Connection: close\r\n\r\n".encode()
    )
    assert b"200 OK" in raw
    assert b"admin" not in raw


@pytest.mark.parametrize(
    "trick", ["/../../../hub/api", "/%2e%2e/other/", "/a/./b", "/%2E./x", "/a%2f..%2fb", "/a\\b"]
)
def test_a_path_that_is_read_in_two_ways_is_refused(rig: GatewayRig, key: str, trick: str) -> None:
    before = [len(app.asked) for app in rig.stand_ins]
    answer = rig.raw(
        f"GET {APP}{trick} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\nConnection: close\r\n\r\n".encode()
    )
    assert answer.startswith(b"HTTP/1.1 400 "), answer
    assert [len(app.asked) for app in rig.stand_ins] == before


@pytest.mark.parametrize(
    "path", ["ann/shop;x/", "ann//shop/", "/ann/shop/", "ann%2Fshop/", "ann/shop%00/", "ANN/shop/"]
)
def test_an_app_has_one_spelling(rig: GatewayRig, key: str, path: str) -> None:
    before = [len(app.asked) for app in rig.stand_ins]
    assert rig.visit(f"{PREFIX}/{path}", X_API_Key=key).status in (400, 404)
    assert [len(app.asked) for app in rig.stand_ins] == before


def test_two_lengths_and_an_upgrade_with_a_body_never_reach_the_app(rig: GatewayRig, key: str) -> None:
    before = [len(app.asked) for app in rig.stand_ins]
    head = f"POST {APP}/ HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\nConnection: close\r\n"
    both = rig.raw(f"{head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".encode())
    twice = rig.raw(f"{head}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello".encode())
    upgrade = rig.raw(
        f"GET {APP}/ HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\nConnection: Upgrade\r\n"
        "Upgrade: websocket\r\nContent-Length: 5\r\n\r\nhello".encode()
    )
    h2c = rig.raw(
        f"GET {APP}/ HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\nConnection: Upgrade, HTTP2-Settings\r\n"
        "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n".encode()
    )
    for answer in (both, twice, upgrade, h2c):
        assert answer.startswith(b"HTTP/1.1 400 "), answer
    assert [len(app.asked) for app in rig.stand_ins] == before


@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS", "POST"])
def test_a_body_is_never_read_as_a_request_in_anothers_name(rig: GatewayRig, key: str, method: str) -> None:
    hidden = b"GET /hidden HTTP/1.1\r\nHost: x\r\nX-MLP-User: victim\r\n\r\n"
    head = f"{method} {APP}/seen HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\n"
    answer = rig.raw(
        f"{head}Connection: close, content-length, host\r\nContent-Length: {len(hidden)}\r\n\r\n".encode()
        + hidden
    )
    assert answer.startswith(b"HTTP/1.1 200 "), answer
    assert f'"size": {len(hidden)}'.encode() in answer
    assert b'"host": "localhost"' in answer
    assert not [one for app in rig.stand_ins for one in app.asked if "/hidden" in str(one)]


def test_bodies_stream_both_ways_and_events_come_one_by_one(rig: GatewayRig, key: str) -> None:
    go_on = threading.Event()

    def events(handler: Any) -> None:
        first = handler.rfile.readline() + handler.rfile.readline() + handler.rfile.readline()
        assert b"early" in first or first
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.wfile.write(b"a\r\ndata: one\n\r\n")
        go_on.wait(PATIENCE_S)
        handler.wfile.write(b"a\r\ndata: two\n\r\n0\r\n\r\n")
        handler.close_connection = True

    for app in shop(rig):
        app.paths["/events"] = events
    with socket.create_connection(("127.0.0.1", rig.proxy.port), PATIENCE_S) as plain:
        head = f"POST {APP}/events HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\nTransfer-Encoding: chunked\r\n\r\n"
        # the answer begins before the body has ended
        plain.sendall(head.encode() + b"5\r\nearly\r\n1\r\nx\r\n")
        until(plain, b"data: one")
        go_on.set()
        until(plain, b"data: two")


def test_a_websocket_goes_both_ways_and_plants_no_cookie(rig: GatewayRig, key: str) -> None:
    with upgraded(rig, {"X-API-Key": key}) as (plain, answer):
        assert answer.startswith(b"HTTP/1.1 101 ")
        assert b"planted" not in answer
        for word in (b"one", b"two" * 10_000):
            plain.sendall(word)
            until(plain, word)
    for headers in ({}, {"X-API-Key": "mlpk_" + "z" * 43}):
        with upgraded(rig, headers) as (_, answer):
            assert answer.startswith(b"HTTP/1.1 401 ")


# --------------------------------------------------------------- what goes wrong


def test_a_body_that_is_too_large_is_refused_in_words(rig: GatewayRig, key: str) -> None:
    answer = rig.visit(f"{APP}/", method="POST", body=b"x" * (1 << 21), X_API_Key=key)
    assert answer.status == 413
    assert "1 MiB" in answer.json["msg"]
    chunks = b"".join(b"10000\r\n" + b"x" * 65536 + b"\r\n" for _ in range(20)) + b"0\r\n\r\n"
    head = f"POST {APP}/ HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    assert rig.raw(head.encode() + chunks).startswith(b"HTTP/1.1 413 ")


def test_an_app_that_never_answers_or_answers_nonsense_gets_a_readable_error(
    rig: GatewayRig, key: str
) -> None:
    gone = threading.Event()

    def silent(handler: Any) -> None:
        while handler.connection.recv(1):
            pass
        gone.set()

    def endless(handler: Any) -> None:
        line = b"X-More: " + b"y" * 1000 + b"\r\n"
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            handler.wfile.write(line)

    def nonsense(handler: Any) -> None:
        handler.wfile.write(b"nonsense\r\n\r\n")
        handler.close_connection = True

    def switches(handler: Any) -> None:
        handler.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
        handler.close_connection = True

    for app in shop(rig):
        app.paths |= {"/silent": silent, "/endless": endless, "/nonsense": nonsense, "/switches": switches}
    late = rig.visit(f"{APP}/silent", X_API_Key=key)
    assert (late.status, late.json["msg"]) == (504, "This app did not answer within 3 s.")
    assert gone.wait(PATIENCE_S)  # and it was let go
    for path in ("endless", "nonsense", "switches"):
        assert rig.visit(f"{APP}/{path}", X_API_Key=key).status == 502
    assert rig.visit(f"{APP}/", X_API_Key=key).status == 200


def test_a_client_that_goes_away_ends_its_request_at_the_app(rig: GatewayRig, key: str) -> None:
    came, gone = threading.Event(), threading.Event()

    def waits(handler: Any) -> None:
        came.set()
        while handler.connection.recv(1):
            pass
        gone.set()

    for app in shop(rig):
        app.paths["/waits"] = waits
    with socket.create_connection(("127.0.0.1", rig.proxy.port), PATIENCE_S) as plain:
        plain.sendall(f"GET {APP}/waits HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\n\r\n".encode())
        assert came.wait(PATIENCE_S)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert gone.wait(PATIENCE_S)


def test_an_app_cannot_send_a_programs_token_to_the_hub(rig: GatewayRig, key: str) -> None:
    port = rig.proxy.port
    outside = [
        f"http://localhost:{port}/hub/api/users",
        "http:/hub/api",
        "http:hub/api",
        f"http://LOCALHOST:{port}/services/mlp/api/v1/session",
        "../../../../hub/api",
        "x/../../../y",
        "\\\\localhost\\hub",
        ".\t./hub",
        "javascript:alert(1)",
    ]
    inside = {
        "/login?next=/": f"{APP}/login?next=/",
        f"{APP}/here": f"{APP}/here",
        "/../../hub/api": f"{APP}/hub/api",
        "next": "next",
        "https://elsewhere.example/x": "https://elsewhere.example/x",
        "//elsewhere.example/x": "http://elsewhere.example/x",
    }
    led = {"to": ""}

    def leads(handler: Any) -> None:
        more = {
            "Location": led["to"],
            "Set-Cookie": "a=1; Domain=localhost",
            "Clear-Site-Data": '"*"',
            "Refresh": "0; /hub",
        }
        handler.tell({**more, "Content-Security-Policy": "script-src *"}, 307)

    for app in shop(rig):
        app.paths["/leads"] = leads
    for location in outside:
        led["to"] = location
        assert rig.visit(f"{APP}/leads", method="POST", X_API_Key=key).status == 502, location
    for location, becomes in inside.items():
        led["to"] = location
        answer = rig.visit(f"{APP}/leads", X_API_Key=key)
        assert (answer.status, answer.headers["location"]) == (307, becomes)
        assert not {"set-cookie", "clear-site-data", "refresh"} & set(answer.headers)
        assert answer.headers["content-security-policy"] == "sandbox"


def test_a_replica_that_refuses_is_passed_over_and_requests_spread(rig: GatewayRig) -> None:
    first, second = rig.stand_in("ann", "pair", "red", replicas=2)
    key = rig.key("ann", "pair", "k", rig.ann)
    path = f"{PREFIX}/ann/pair"
    by = {rig.visit(f"{path}/", X_API_Key=key).json["by"] for _ in range(40)}
    assert by == {first.path.name, second.path.name}
    first.close()
    for _ in range(10):
        assert rig.visit(f"{path}/", X_API_Key=key).json["by"] == second.path.name
    second.close()
    none = rig.visit(f"{path}/", X_API_Key=key)
    assert none.status == 503
    assert none.headers["retry-after"]


def test_an_app_that_waits_or_failed_says_why_and_is_there_once_it_answers(rig: GatewayRig) -> None:
    (app,) = rig.stand_in("ann", "slow", "red")
    key = rig.key("ann", "slow", "k", rig.ann)
    ready = rig.apps["ann", "slow"]
    rig.put(ready._replace(state="waiting", replicas=()))
    waits = rig.visit(f"{PREFIX}/ann/slow/", X_API_Key=key)
    assert waits.status == 503
    assert waits.json["msg"].startswith("This app waits for its turn.")
    assert waits.headers["retry-after"]
    rig.put(ready)
    wait_for(lambda: rig.visit(f"{PREFIX}/ann/slow/", X_API_Key=key).status == 200, message="for the app")
    assert app.asked


def test_requests_to_an_app_are_counted_for_its_owner(rig: GatewayRig) -> None:
    rig.stand_in("ann", "counted", "red")
    key = rig.key("ann", "counted", "k", rig.ann)
    for _ in range(3):
        assert (
            rig.visit(f"{PREFIX}/ann/counted/", method="POST", body=b"x" * 100, X_API_Key=key).status == 200
        )

    def counted() -> dict[str, Any] | None:
        found: dict[str, Any] = rig.ask("GET", "/users/ann/apps/counted/usage", token=rig.ann).json
        return found if found["requests"] == 3 else None

    usage = wait_for(counted, message="for the requests to be counted")
    assert usage["errors"] == 0
    assert usage["bytes_in"] == 300
    assert usage["bytes_out"] > 300
    assert sum(usage["latency"]) == 3
    assert usage["p50_ms"] is not None
    assert sum(minute["requests"] for minute in usage["minutes"]) == 3
    assert rig.ask("GET", "/tenants/red/apps/usage", token=rig.ann).json["requests"] >= 3
    assert rig.ask("GET", "/users/ann/apps/counted/usage", token=rig.bob).status == 403


def test_attack_guesses_of_keys_are_slowed_down_and_who_has_one_is_not(
    rig: GatewayRig, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert rig.visit(f"{APP}/", **bearer(key)).status == 200
    assert rig.visit(f"{APP}/", **bearer(f"{key[:-6]}000000")).status == 401
    take = rig.service.limiter.take_token
    # as after many: this rig lets all through
    monkeypatch.setattr(
        rig.service.limiter,
        "take_token",
        lambda bucket, who: 3 if bucket == "unknown-token" else take(bucket, who),
    )
    assert rig.visit(f"{APP}/", **bearer(f"{key[:-6]}000001")).status == 429
    assert rig.visit(f"{APP}/", **bearer(key)).status == 200


@contextlib.contextmanager
def upgraded(
    rig: GatewayRig, headers: dict[str, str], path: str = f"{APP}/ws", host: str = "localhost"
) -> Iterator[tuple[socket.socket, bytes]]:
    """Ask for a WebSocket; give the connection, and how its answer begins."""
    with socket.create_connection(("127.0.0.1", rig.proxy.port), PATIENCE_S) as plain:
        lines = [f"GET {path} HTTP/1.1", f"Host: {host}", "Connection: Upgrade", "Upgrade: websocket"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        plain.sendall("\r\n".join([*lines, "", ""]).encode())
        yield plain, until(plain, b"\r\n\r\n")


def read_end(plain: socket.socket) -> bytes:
    """Read until the other side ends."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while part := plain.recv(65536):
            found += part
    return found


def until(plain: socket.socket, wanted: bytes) -> bytes:
    """Read until something has come; fail at the end of what comes."""
    found = b""
    while wanted not in found:
        part = plain.recv(65536)
        assert part, found
        found += part
    return found

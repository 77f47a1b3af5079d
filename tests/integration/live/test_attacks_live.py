"""A tenant against the real platform: jobs that attack what runs outside, and requests through the real proxy."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from support.hubs.live_hub import PASSWORD, LiveHub, tenant_use
from support.local_names import LocalNames
from support.waiting import PATIENCE_S, wait_for

SMALL = {"cpu": 0.2, "ram": 128}
API = "/services/mlp/api/v1"

FROM_INSIDE = """
import os, socket, urllib.parse
api = os.environ["MLP_API_URL"]
path = urllib.parse.unquote(api.split("//")[1].split("/")[0])
directory = os.path.dirname(path)
def ask(sock, method, what, body=b""):
    s = socket.socket(socket.AF_UNIX)
    s.connect(f"{directory}/{sock}")
    s.settimeout(180)
    s.sendall(f"{method} {what} HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\nX-Forwarded-User: admin\\r\\n"
              f"X-Tenant-ID: default\\r\\nContent-Type: application/json\\r\\nContent-Length: {len(body)}\\r\\n"
              f"Authorization: Bearer {os.environ['MLP_JOB_TOKEN']}\\r\\n\\r\\n".encode() + body)
    print(sock, method, what, s.recv(65536).split(b" ")[1].decode(), flush=True)
for what in ("users/bob/jobs/in-jail", "users/bob/jobs", "users/bob/token", "users/ann/jobs", "users", "nodes", "session"):
    ask("mlp.sock", "GET", f"/services/mlp/api/v1/{what}")
ask("mlp.sock", "POST", "/services/mlp/api/v1/users/bob/jobs", b'{"name": "by-token", "code": "pass"}')
ask("mlp.sock", "DELETE", "/services/mlp/api/v1/users/bob/jobs/in-jail")
for what in ("users", "user", "mlp/accounts", "info", "services"):
    ask("hub.sock", "GET", f"/hub/api/{what}")
def attempt(what, do):
    try:
        print("BROKEN", what, do())
    except OSError:
        print("closed", what)
attempt("private", lambda: os.listdir(directory + "/../private"))
attempt("sockets", lambda: os.unlink(path))
attempt("secrets", lambda: os.listdir(os.environ["TEST_HOME"] + "/secrets"))
attempt("database", lambda: open(os.environ["TEST_HOME"] + "/db/mlp.sqlite"))
attempt("other home", lambda: os.listdir("/home/ann"))
attempt("other home by its place", lambda: os.listdir(os.environ["TEST_HOME"] + "/homes/ann"))
attempt("shadow", lambda: open("/etc/shadow"))
attempt("port", lambda: socket.create_connection(("127.0.0.1", int(os.environ["TEST_PORT"])), 3))
attempt("log", lambda: os.rename("/workspace/log", "/workspace/mine"))
attempt("code", lambda: open("/workspace/code/main.py", "a"))
attempt("core pattern", lambda: open("/proc/sys/kernel/core_pattern", "w"))
"""


def test_a_job_reaches_its_own_job_and_nothing_else(hub: LiveHub) -> None:
    env = {"TEST_HOME": str(hub.home), "TEST_PORT": str(hub.port)}
    hub.submit("bob", "in-jail", FROM_INSIDE, env=env, **SMALL)
    hub.wait_phase("bob", "in-jail", "finished")
    log = hub.log("bob", "in-jail")
    assert "BROKEN" not in log
    assert log.count("closed") == 11, log
    answers = {
        line.rsplit(" ", 1)[0]: line.rsplit(" ", 1)[1] for line in log.splitlines() if ".sock " in line
    }
    assert len(answers) == 14
    own = next(key for key in answers if key.endswith("GET /services/mlp/api/v1/users/bob/jobs/in-jail"))
    assert answers.pop(own) == "200"
    assert set(answers.values()) == {"403"}, answers


def test_a_job_that_plants_traps_for_outside_processes_ends_and_can_be_deleted(hub: LiveHub) -> None:
    """Endless directories, links to everywhere, holes of gigabytes, pipes, and text that cannot be stored."""
    before = tenant_use(hub)
    hub.submit("ann", "mine", "open('/home/ann/kept', 'w').write('kept')", **SMALL)
    hub.wait_phase("ann", "mine", "finished")
    code = f"""
import os
os.chdir("/workspace/metrics")
for number in range(40):
    with open(f"0.0.hole{{number}}.jsonl", "wb") as file:
        file.truncate(5 * 2**30)
open("0.0.a.jsonl", "w").write('{{"n": 1, "t": NaN, "v": {{"\\\\ud800": 1, "loss": 1' + "0" * 400 + '}}}}\\n')
os.mkfifo("0.0.b.jsonl")
os.symlink("/etc/passwd", "0.0.c.jsonl")
os.symlink({str(hub.home / "homes" / "ann")!r}, "/workspace/ann")
os.symlink("/", "/workspace/ckpt/root")
os.chdir("/workspace/ckpt")
for _ in range(2500):
    os.mkdir("deep")
    os.chdir("deep")
os.symlink({str(hub.home / "homes")!r}, "homes")
"""
    hub.submit("bob", "traps", code, **SMALL)
    hub.wait_phase("bob", "traps", "finished", "failed")  # too deep to be measured: it may be stopped
    assert tenant_use(hub) == before
    assert [point["values"] for point in hub.points("bob", "traps")] == [{"?": 1, "loss": None}]
    hub.ok("DELETE", "/users/bob/jobs/traps", "bob")
    wait_for(lambda: hub.call("GET", "/users/bob/jobs/traps", "bob").status_code == 403)
    assert not (hub.home / "mlp" / "jobs" / "bob" / "traps").exists()
    assert (hub.home / "homes" / "ann" / "kept").read_text() == "kept"
    assert Path("/etc/passwd").exists()


def test_two_users_jobs_of_one_name_never_meet(hub: LiveHub) -> None:
    for user in ("ann", "bob"):
        hub.submit(user, "twin", f"open('/workspace/ckpt/x', 'w').write('{user}'); print('{user}')", **SMALL)
    for user, other in (("ann", "bob"), ("bob", "ann")):
        hub.wait_phase(user, "twin", "finished")
        assert user in hub.log(user, "twin")
        assert (hub.home / "mlp" / "jobs" / user / "twin" / "ckpt" / "x").read_text() == user
        foreign = hub.call("GET", f"/users/{other}/jobs/twin", user)
        missing = hub.call("GET", "/users/nobody-at-all/jobs/twin", user)
        assert foreign.status_code == missing.status_code == 403
        said = [answer.text.replace(answer.headers["x-request-id"], "ID") for answer in (foreign, missing)]
        assert said[0].replace(other, "X") == said[1].replace("nobody-at-all", "X")


def test_a_tenants_admin_who_takes_somebody_in_does_not_get_their_work(hub: LiveHub) -> None:
    hub.ok("POST", "/tenants", body={"name": "greedy"})
    hub.ok("PUT", "/tenants/greedy/members/bob", body={"role": "admin"})
    hub.ok("PUT", "/tenants/greedy/members/ann", "bob", {"role": "member"})
    try:
        job = hub.submit("ann", "private", "print('secret')", **SMALL)
        assert job["tenant"] == "default"
        hub.wait_phase("ann", "private", "finished")
        for path in ("", "/logs", "/events"):
            assert hub.call("GET", f"/users/ann/jobs/private{path}", "bob").status_code == 403
    finally:
        for user in ("ann", "bob"):
            hub.ok("DELETE", f"/tenants/greedy/members/{user}")


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost@evil.example", ""])
def test_a_rebound_name_stops_at_the_proxy(hub: LiveHub, host: str) -> None:
    for path in ("/hub/login", f"{API}/health", "/user/ann/"):
        assert _raw(hub, f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n") == 421


@pytest.mark.parametrize(
    "path",
    [
        "/services/mlp/static/%2e%2e%2f%2e%2e%2fpages.py",
        "/services/mlp/static/..%2f..%2f..%2fapp.py",
        "/services/mlp/static//etc/passwd",
        "/services/mlp/static/%00",
        f"{API}/../v1/users/ann/jobs",
        f"{API}/users/bob/..%2fann/jobs",
        f"{API}//users/ann/jobs",
        f"{API}/users/%61nn/jobs",
        f"{API}/users/ann/jobs;x",
        "/data/../services/mlp/api/v1/users",
        "/hub/api/users",
        "/hub/api/proxy",
        "/api/routes",
    ],
)
def test_no_spelling_of_a_path_reaches_more_through_the_proxy(hub: LiveHub, path: str) -> None:
    token = hub.token("bob")
    status = _raw(hub, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n")
    assert status in (302, 403, 404)


@pytest.mark.parametrize(
    "head",
    [
        "POST {api}/session HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET {api}/health HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n\r\n",
        "GET {api}/health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    ],
)
def test_a_request_that_could_be_read_in_two_ways_is_refused(hub: LiveHub, head: str) -> None:
    assert _raw(hub, head.format(api=API)) == 400


def test_a_browser_session_is_of_no_use_to_other_sites(hub: LiveHub) -> None:
    with httpx.Client(
        base_url=hub.url, transport=LocalNames(), follow_redirects=True, timeout=PATIENCE_S
    ) as browser:
        browser.get("/hub/login")
        form = {
            "username": "bob",
            "password": PASSWORD,
            "_xsrf": browser.cookies.get("_xsrf", path="/hub/") or "",
        }
        away = browser.post("/hub/login?next=//evil.example", data=form, follow_redirects=False)
        assert away.headers["location"].startswith(("/hub/", "/services/mlp/", hub.notebooks("bob")))
        browser.get("/services/mlp/")
        for cookie in browser.cookies.jar:
            # whatever holds a session is this host name's alone, planted by no other, and not for scripts
            assert not cookie.domain_specified
            assert cookie.name.startswith("__Host-") or cookie.name == "_xsrf"
            assert cookie.has_nonstandard_attr("HttpOnly") or cookie.name == "_xsrf"
        xsrf = browser.get(f"{API}/session").json()["xsrf"]
        job = {"name": "forged", "code": "pass"}
        for headers in (
            {},
            {"X-XSRFToken": "0" * len(xsrf)},
            {"X-XSRFToken": xsrf, "Sec-Fetch-Site": "cross-site"},
        ):
            assert browser.post(f"{API}/users/bob/jobs", json=job, headers=headers).status_code == 403
        plain = {"X-XSRFToken": xsrf, "Content-Type": "text/plain"}
        assert (
            browser.post(f"{API}/users/bob/jobs", content=json.dumps(job), headers=plain).status_code == 403
        )
        cookies = "; ".join(f"{c.name}={c.value}" for c in browser.cookies.jar)
        for origin in (
            "https://evil.example",
            "null",
            hub.notebooks("bob"),
            f"http://127.0.0.1:{hub.port + 1}",
            f"{hub.url}.evil.example",
        ):
            with pytest.raises(InvalidStatus):
                connect(
                    f"ws://localhost:{hub.port}{API}/users/bob/jobs/twin:stream",
                    origin=origin,  # type: ignore[arg-type]
                    additional_headers={"Cookie": cookies},
                    proxy=None,
                )


def test_a_revoked_token_ends_requests_and_open_streams_in_seconds(hub: LiveHub) -> None:
    hub.submit("bob", "streamed", "import time; time.sleep(600)", **SMALL)
    try:
        made = hub.http.post(
            "/hub/api/users/bob/tokens",
            headers={"Authorization": f"Bearer {hub.token('bob')}"},
            json={"scopes": ["custom:mlp:jobs:read", "access:services!service=mlp"]},
        )
        assert made.is_success, made.text
        token, number = made.json()["token"], made.json()["id"]
        mine = {"Authorization": f"Bearer {token}"}
        path = f"{API}/users/bob/jobs/streamed"
        assert hub.http.get(path, headers=mine).status_code == 200
        url = f"ws://127.0.0.1:{hub.port}{path}:stream?since=0"
        with connect(url, additional_headers=mine, proxy=None) as ws:
            ws.recv(timeout=PATIENCE_S)
            admin = {"Authorization": f"Bearer {hub.token('admin')}"}
            assert hub.http.delete(f"/hub/api/users/bob/tokens/{number}", headers=admin).status_code == 204
            with pytest.raises(ConnectionClosed):
                _drain(ws)
        wait_for(lambda: hub.http.get(path, headers=mine).status_code == 401)
    finally:
        hub.ok("PUT", "/users/bob/jobs/streamed:cancel", "bob")
        hub.wait_phase("bob", "streamed", "cancelled")


def test_program_output_is_never_served_as_a_page(hub: LiveHub) -> None:
    hub.submit("bob", "script", "print('<script>alert(1)</script>\\x1b]0;x\\x07')", **SMALL)
    hub.wait_phase("bob", "script", "finished")
    for path in ("/users/bob/jobs/script", "/users/bob/jobs/script/logs"):
        answer = hub.call("GET", path, "bob", headers={"Accept": "text/html"})
        assert "html" not in answer.headers["content-type"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in answer.headers["content-security-policy"]


HOARDER = """
import os, socket, time, urllib.parse
directory = os.path.dirname(urllib.parse.unquote(os.environ["MLP_API_URL"].split("//")[1].split("/")[0]))
for name in ("mlp.sock", "hub.sock"):
    held = []
    for _ in range(800):
        s = socket.socket(socket.AF_UNIX)
        s.connect(f"{directory}/{name}")
        try:
            s.sendall(b"POST /services/mlp/api/v1/users HTTP/1.1\\r\\nHost: x\\r\\nX: ")
        except OSError:
            pass
        held.append(s)
    alive = len(held)
    for _ in range(300):  # until all that are refused are closed; a hub that refuses none is told by the number
        if alive <= 500:
            break
        time.sleep(0.5)
        alive = 0
        for s in held:
            s.setblocking(False)
            try:
                s.recv(1)
            except BlockingIOError:
                alive += 1
            except OSError:
                pass
    print(name, "holds", alive, flush=True)
    globals()[name] = held
print("ready", flush=True)
time.sleep(600)
"""


def test_a_job_that_hoards_connections_leaves_the_platform_to_others(hub: LiveHub) -> None:
    hub.submit("bob", "hoarder", HOARDER, **SMALL)
    try:
        hub.wait_phase("bob", "hoarder", "running")
        wait_for(lambda: "ready" in hub.log("bob", "hoarder"))
        held = {line.split()[0]: int(line.split()[2]) for line in hub.log("bob", "hoarder").splitlines()[:2]}
        # 500 of one user; the first of them is the delivery of the job's own reports, if there is one
        assert {name: 490 <= count <= 500 for name, count in held.items()} == {
            "mlp.sock": True,
            "hub.sock": True,
        }, held
        for component in ("service", "hub"):
            assert _open_files(hub.pid(component)) < 1500
        assert hub.http.get("/hub/login").status_code == 200
        assert hub.call("GET", "/users/ann/jobs", "ann").status_code == 200
        # another user's job reaches its service through the same socket
        hub.submit("ann", "neighbour", FROM_INSIDE.split("for what", maxsplit=1)[0] + SELF, **SMALL)
        hub.wait_phase("ann", "neighbour", "finished")
        assert "200" in hub.log("ann", "neighbour")
    finally:
        hub.ok("PUT", "/users/bob/jobs/hoarder:cancel", "bob")
        hub.wait_phase("bob", "hoarder", "cancelled")
    wait_for(lambda: _open_files(hub.pid("service")) < 500)


SELF = """
ask("mlp.sock", "GET", f"/services/mlp/api/v1/users/{os.environ['MLP_USER']}/jobs/{os.environ['MLP_JOB']}")
"""


def test_an_address_that_hoards_stalled_requests_leaves_the_port_to_others(hub: LiveHub) -> None:
    attack = f"POST {API}/users HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nx".encode()
    held: list[socket.socket] = []
    try:
        for _ in range(1200):
            link = socket.create_connection(("127.0.0.1", hub.port), PATIENCE_S, ("127.0.0.9", 0))
            with contextlib.suppress(OSError):
                link.sendall(attack)
            held.append(link)
        for path in ("/hub/login", f"{API}/health"):
            assert hub.http.get(path).status_code == 200
        assert hub.call("GET", "/users/ann/jobs", "ann").status_code == 200
        for component in ("service", "hub", "proxy"):
            assert _open_files(hub.pid(component)) < 3000
        # refused sign-ups are answered although their bodies never end, and closed
        last = held[900]
        last.settimeout(PATIENCE_S)
        answer = last.recv(65536)
        assert answer.split(b" ")[1] == b"429"
        assert b"connection: close" in answer.lower()
        assert last.recv(1) == b""
    finally:
        for link in held:
            link.close()


def test_a_namesake_of_a_refused_sign_up_has_nothing_of_theirs(hub: LiveHub) -> None:
    for tenant, admin in (("crimson", "ann"), ("azure", "bob")):
        hub.ok("POST", "/tenants", body={"name": tenant})
        hub.ok("PUT", f"/tenants/{tenant}/members/{admin}", body={"role": "admin"})
    try:
        body = {"username": "dave", "password": PASSWORD}
        assert hub.http.post(f"{API}/users", json={**body, "tenant": "crimson"}).status_code == 201
        for who in ("ann", "admin"):
            answer = hub.call("PUT", "/tenants/crimson/members/dave", who, {"role": "admin"})
            assert (answer.status_code, answer.json()["reason"]) == (403, "NotFound")
        hub.ok("DELETE", "/users/dave", "ann")
        assert hub.http.post(f"{API}/users", json={**body, "tenant": "azure"}).status_code == 201
        assert hub.ok("PUT", "/users/dave:approve", "bob")["tenants"] == ["azure"]
        assert hub.call("GET", "/tenants/crimson", "dave").json()["reason"] == "NotFound"
        assert [m["user"] for m in hub.ok("GET", "/tenants/crimson/members")] == ["ann"]
    finally:
        for tenant, users in (("crimson", ("ann",)), ("azure", ("bob", "dave"))):
            for user in users:
                hub.call("DELETE", f"/tenants/{tenant}/members/{user}")
            hub.ok("DELETE", f"/tenants/{tenant}")


def test_a_failures_words_steer_no_terminal_and_turn_no_writing(hub: LiveHub) -> None:
    code = "raise ValueError('\\x1b]0;pwned\\x07\\x1b[2J\\u202egnp.exe\\r[I 2026 hub] logged in: admin')"
    hub.submit("bob", "steering", code, **SMALL)
    job = hub.wait_phase("bob", "steering", "failed")
    assert "logged in: admin" in job["failure"]["message"] + job["failure"]["tail"]
    events = hub.ok("GET", "/users/bob/jobs/steering/events", "bob")
    said = [job["message"], job["failure"]["message"], *(event["message"] for event in events)]
    assert all(text.isprintable() for text in said), said
    assert job["failure"]["tail"].replace("\n", "").isprintable()


def _open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def _drain(ws: ClientConnection) -> None:
    """Read until the other side closes, or the time is over."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        ws.recv(timeout=PATIENCE_S)


def _raw(hub: LiveHub, text: str) -> int:
    """Send exactly this and return the status."""
    with socket.create_connection(("127.0.0.1", hub.port), PATIENCE_S) as link:
        link.sendall(text.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1).encode())
        answer = link.recv(65536)
    return int(answer.split(b" ")[1])

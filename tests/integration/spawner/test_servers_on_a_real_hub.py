"""Notebook servers in real sandboxes, behind a real hub and a real proxy."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
from urllib.parse import urlsplit

import httpx
import pytest
from websockets.sync.client import connect

from mlp_hub import sandbox
from mlp_hub.api.hubclient import HubClient
from mlp_hub.unix_sockets import url_of
from support.hubs.hub_stack import Browser, start_server, stop_server, text_of, user_token
from support.hubs.kernel_client import Kernel
from support.local_names import LocalNames
from support.waiting import PATIENCE_S, wait_for

STACK = {"limits": {"small": 1500}}

pytestmark = pytest.mark.skipif(sandbox.capabilities().mode is None, reason="no sandbox can be made here")


@pytest.fixture(scope="module")
def ann(stack):
    """A server of ann's that most tests share."""
    stack.add("ann")
    token = start_server(stack, "ann")
    kernel = Kernel(stack.notebooks("ann"), "ann", token)
    yield kernel
    kernel.close()


def rows(stack) -> dict:
    return {key: row["phase"] for key, row in stack.ledger()["rows"].items()}


def test_a_cell_runs_through_the_proxy(ann):
    assert ann.run("1+1") == "2"


def test_a_running_servers_quota_is_confirmed(stack, ann):
    assert rows(stack)["ann/"] == "confirmed"
    row = stack.ledger()["rows"]["ann/"]
    assert (row["tenant"], row["cpu"], row["ram"], row["holder"]) == ("default", 0.2, 1024, "ann's notebook")


def test_the_browser_gets_to_lab(stack, ann):
    person = Browser(stack)
    person.login("ann")
    page = person.get("/user/ann/")
    assert str(page.url.copy_with(query=None)) == f"{stack.notebooks('ann')}/user/ann/lab"
    config = json.loads(
        re.search(r'<script id="jupyter-config-data"[^>]*>(.*?)</script>', page.text, re.DOTALL)[1]
    )
    assert config["terminalsAvailable"] is True
    assert "@jupyterlab/apputils-extension:announcements" in json.dumps(config["disabledExtensions"])


def test_the_notebook_knows_where_the_platform_is(stack, ann):
    out = ann.run(
        "import os\nprint(*[os.environ[k] for k in ('MLP_USER', 'MLP_TENANT', 'MLP_API_URL', 'HOME')])\n"
        "print(os.environ['MLP_TOKEN'] == os.environ['JUPYTERHUB_API_TOKEN'])"
    )
    socket = str(stack.settings.tenant_service_socket).replace("/", "%2F")
    assert out.split() == ["ann", "default", f"http+unix://{socket}/services/mlp/api/v1", "/home/ann", "True"]


def test_the_notebooks_token_opens_the_platform_with_its_scopes_only(ann):
    out = ann.run(
        "import os, socket, urllib.parse\n"
        "u = urllib.parse.urlsplit(os.environ['MLP_API_URL'])\n"
        "s = socket.socket(socket.AF_UNIX); s.connect(urllib.parse.unquote(u.netloc))\n"
        "s.sendall(f'GET {u.path}/who HTTP/1.0\\r\\nAuthorization: Bearer {os.environ[\"MLP_TOKEN\"]}\\r\\n\\r\\n'.encode())\n"
        "print(s.makefile().read().split('\\n\\n')[-1])"
    )
    me = json.loads(out)
    assert me["name"] == "ann"
    assert {s for s in me["scopes"] if s.startswith("custom:")} == {
        *(
            f"custom:mlp:{kind}:{act}"
            for kind in ("jobs", "models", "apps", "data")
            for act in ("read", "write")
        ),
        "custom:mlp:notices:read",
        "custom:mlp:tenants:read",
    }
    assert "access:services!service=mlp" in me["scopes"]
    assert not {s for s in me["scopes"] if s.startswith(("admin", "tokens", "servers"))}


def test_the_mlp_extension_is_configured_for_every_kernel(ann):
    out = ann.run(
        "from IPython import get_ipython\nprint(get_ipython().config.InteractiveShellApp.extra_extensions)"
    )
    assert "'mlp'" in out


@pytest.mark.skipif(sandbox.capabilities().seccomp is None, reason="no filter can be made here")
def test_kernels_and_terminals_are_under_the_filter_of_system_calls(ann):
    assert "Seccomp:\t2" in ann.run("print(open('/proc/self/status').read())")
    assert "Operation not permitted" in ann.run("!unshare --user true")
    with httpx.Client(transport=LocalNames(), timeout=PATIENCE_S) as client:
        made = client.post(f"{ann.base}/api/terminals", headers=ann.headers)
    assert made.status_code == 200, made.text
    url = f"{ann.base}/terminals/websocket/{made.json()['name']}".replace("http", "ws", 1)
    link = socket.create_connection(
        ("127.0.0.1", urlsplit(ann.base).port)
    )  # names below localhost are this machine
    with connect(
        url, sock=link, legacy=True, additional_headers=ann.headers, proxy=None, open_timeout=PATIENCE_S
    ) as terminal:
        terminal.send(json.dumps(["stdin", "grep Seccomp: /proc/self/status; echo $((6 * 7))-typed\r"]))
        seen = ""
        while "42-typed" not in seen:
            kind, *what = json.loads(terminal.recv(timeout=PATIENCE_S))
            seen += what[0] if kind == "stdout" else ""
    assert "Seccomp:\t2" in seen


def test_packages_installed_with_pip_for_the_user_are_importable(ann):
    made = ann.run(
        "import pathlib, subprocess, sys, textwrap\n"
        "d = pathlib.Path.home() / 'pkg'; d.mkdir(exist_ok=True)\n"
        "(d / 'pyproject.toml').write_text('[build-system]\\nrequires=[]\\nbuild-backend=\"b\"\\nbackend-path=[\".\"]\\n')\n"
        "(d / 'b.py').write_text(textwrap.dedent('''\n"
        "    import zipfile\n"
        "    def build_wheel(out, *a, **k):\n"
        "        name = 'mine-1-py3-none-any.whl'\n"
        "        with zipfile.ZipFile(out + '/' + name, 'w') as z:\n"
        "            z.writestr('mine.py', 'answer = 42')\n"
        "            z.writestr('mine-1.dist-info/METADATA', 'Metadata-Version: 2.1\\\\nName: mine\\\\nVersion: 1\\\\n')\n"
        "            z.writestr('mine-1.dist-info/WHEEL', 'Wheel-Version: 1.0\\\\nRoot-Is-Purelib: true\\\\nTag: py3-none-any\\\\n')\n"
        "            z.writestr('mine-1.dist-info/RECORD', '')\n"
        "        return name\n"
        "    '''))\n"
        "done = subprocess.run([sys.executable, '-m', 'pip', 'install', '--user', '--no-index', '--no-deps', str(d)],"
        " capture_output=True, text=True)\n"
        "print(done.returncode, done.stderr[-800:])\n"
    )
    assert made.startswith("0"), made
    assert (
        ann.run(
            "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import mine; print(mine.answer)'], capture_output=True, text=True).stdout"
        )
        == "'42\\n'"
    )


def test_a_tenant_finds_neither_other_homes_nor_the_hubs_things(stack, ann):
    stack.settings.homes_dir.joinpath("zoe").mkdir(exist_ok=True)
    home = stack.home
    out = ann.run(
        "import os, pathlib\n"
        f"home = pathlib.Path({str(home)!r})\n"
        "seen = [str(p) for p in home.rglob('*')]\n"
        "print(sorted(seen)); print(os.listdir('/home')); print(os.getuid(), os.path.exists('/etc/shadow'))\n"
        "print(sorted(p for p in os.listdir('/proc') if p.isdigit())[:3], len([p for p in os.listdir('/proc') if p.isdigit()]) < 30)"
    )
    assert "run/tenant" in out
    for word in ("private", "secrets", "sqlite", "zoe", "proxy-api"):
        assert word not in out, out
    assert "['ann']" in out
    if os.geteuid() == 0:
        assert "300001 False" in out or re.search(r"3\d{5} False", out)


def test_a_tenant_reaches_neither_the_proxys_api_nor_the_hosts_loopback(stack, ann):
    out = ann.run(
        "import socket, pathlib\n"
        "def tcp(host, port):\n"
        "    s = socket.socket(); s.settimeout(3)\n"
        "    try: s.connect((host, port)); return 'open'\n"
        "    except OSError as e: return 'closed'\n"
        f"print(tcp('127.0.0.1', {stack.port}), tcp('10.0.2.2', {stack.port}))\n"
        f"for path in ({str(stack.settings.proxy_api_socket)!r}, {str(stack.settings.service_socket)!r}):\n"
        "    try: socket.socket(socket.AF_UNIX).connect(path); print('open')\n"
        "    except OSError: print('closed')\n"
        "print([l for l in open('/proc/net/unix') if '.sock' in l and 'run/private' in l])"
    )
    assert out.split() == ["closed"] * 4 + ["[]"]


def test_a_token_for_ones_own_server_does_not_open_anothers(stack, ann):
    stack.add("bob")
    token = user_token(stack, "bob")
    with httpx.Client(transport=LocalNames()) as client:
        answer = client.get(
            f"{stack.notebooks('ann')}/user/ann/api/contents", headers={"Authorization": f"token {token}"}
        )
    assert answer.status_code in (403, 404)


def test_a_server_survives_the_hubs_death(stack, ann):
    ann.run("before = 41")
    stack.kill("hub")
    assert ann.run("before + 1") == "42"
    stack.start_hub()
    stack.wait_up()
    token = user_token(stack, "ann", "read:users!user", "read:servers!user")
    assert stack.api("GET", "/users/ann", token).json()["servers"][""]["ready"] is True
    ann.close()
    ann.open()
    assert ann.run("before + 2") == "43"
    assert rows(stack)["ann/"] == "confirmed"


def test_a_server_that_does_not_fit_is_refused_with_the_numbers(stack):
    stack.add("cem")
    stack.tell_service(tenants={"cem": ["small", "default"]})
    person = Browser(stack)
    person.login("cem")
    form = person.get("/hub/spawn/cem")
    assert '<option value="small" selected>' in form.text
    # a link starts nothing, whoever wrote it; nor does a page that is loaded again
    for way in ("cpu=0.2&ram=300", "opt-cpu=0.2", "_xsrf=x"):
        assert "spawn_form" in person.get(f"/hub/spawn/cem?{way}").text
    assert stack.api("GET", "/users/cem").json()["servers"] == {}
    refused = person.spawn("cem", tenant="small", cpu="0.2", ram="2000")
    assert refused.status_code == 403
    # its very first words: nothing of the exception around it
    assert re.search(
        r"Server Options small may use 1500 MiB; 0 are in use; this asks for 2000", text_of(refused)
    )
    assert "this asks for 2000 <b>" not in refused.text
    assert "cem/" not in rows(stack)
    assert "you are not in a team" in text_of(person.spawn("cem", tenant="red", cpu="0.2", ram="200"))
    assert "at least 100" in text_of(person.spawn("cem", tenant="small", cpu="0.2", ram="5"))
    answer = stack.api(
        "POST",
        "/users/cem/server",
        user_token(stack, "cem", "servers!user"),
        json={"user_options": {"image": "x"}},
    )
    assert answer.status_code == 400
    assert "is not an option" in answer.json()["message"]


def test_a_start_waits_for_room_that_is_being_made_and_its_page_says_so(stack):
    stack.add("ila")
    stack.tell_service(reclaiming={"ila": 25})  # longer than the hub holds its answer back
    token = user_token(stack, "ila", "servers!user", "read:users!user")
    assert stack.api("POST", "/users/ila/server", token, json={}).status_code == 202
    told = stack.api("GET", "/users/ila/server/progress", token, timeout=PATIENCE_S).text
    assert "Waits for the end of a job of team red." in told
    wait_for(lambda: rows(stack).get("ila/") == "confirmed")
    stop_server(stack, "ila", token)
    assert "ila/" not in rows(stack)


def test_without_the_service_no_server_is_started_and_the_page_says_so(stack):
    stack.add("dov")
    person = Browser(stack)
    person.login("dov")
    stack.kill("service")
    try:
        page = person.get("/hub/spawn/dov")
        assert page.status_code == 503
        assert "does not answer" in text_of(page)
    finally:
        stack.start_service()
        stack.wait_up()


def test_stopping_gives_everything_back(stack):
    stack.add("eli")
    token = start_server(stack, "eli", ram=512)
    row = stack.ledger()["rows"]["eli/"]
    assert (row["ram"], row["phase"]) == (512, "confirmed")
    stop_server(stack, "eli", token)
    assert "eli/" not in rows(stack)
    assert (
        sandbox.inspect(str(stack.settings.servers_run_dir / "eli" / "-")).phase
        is sandbox.SandboxPhase.ABSENT
    )
    token = start_server(stack, "eli")
    assert rows(stack)["eli/"] == "confirmed"
    stop_server(stack, "eli", token)


def test_a_server_that_dies_by_itself_gives_its_quota_back(stack):
    stack.add("fei")
    token = start_server(stack, "fei")
    kernel = Kernel(stack.notebooks("fei"), "fei", token)
    with contextlib.suppress(Exception):
        kernel.run("import os, signal; os.kill(os.getppid(), signal.SIGKILL)", timeout=5)
    kernel.close()
    wait_for(lambda: "fei/" not in rows(stack))
    # the quota comes first: the hub forgets a server once its spawner has given all back
    wait_for(lambda: not stack.api("GET", "/users/fei", token).json()["servers"])


def test_a_hub_that_dies_in_the_middle_of_a_start_leaves_nothing(stack):
    stack.add("gil")
    token = user_token(stack, "gil", "servers!user", "read:users!user")
    with contextlib.suppress(httpx.TimeoutException):
        stack.api("POST", "/users/gil/server", token, json={}, timeout=0.4)
    run_dir = str(stack.settings.servers_run_dir / "gil" / "-")
    wait_for(lambda: sandbox.inspect(run_dir).phase is sandbox.SandboxPhase.RUNNING, 20, 0.02)
    stack.kill("hub")
    assert rows(stack)["gil/"] == "tried"
    stack.start_hub()
    stack.wait_up()
    wait_for(lambda: sandbox.inspect(run_dir).phase is sandbox.SandboxPhase.ABSENT)
    wait_for(lambda: "gil/" not in rows(stack))
    token = start_server(stack, "gil")
    stop_server(stack, "gil", token)


def test_deauthorising_ends_the_server(stack):
    stack.add("hui")
    start_server(stack, "hui")
    assert stack.api("POST", "/mlp/accounts/hui/deauthorize").status_code == 200
    wait_for(lambda: "hui/" not in rows(stack))
    assert stack.http.get("/user/hui/api").status_code != 200


def test_samples_come_once_and_never_over_a_link(stack, ann, monkeypatch):
    from mlp_spawner import server

    if not server.samples():
        pytest.skip("the package has no samples")
    name = server.samples()[0].name
    out = ann.run(
        "import os\nhome = os.path.expanduser('~')\n"
        f"print(os.listdir(home), os.stat(os.path.join(home, {name!r})).st_uid == os.getuid())"
    )
    assert name in out
    assert "True" in out


async def test_the_platforms_service_ends_a_server_which_gives_back_what_it_held(stack):
    stack.add("leo")
    start_server(stack, "leo")
    assert rows(stack)["leo/"] == "confirmed"

    client = HubClient(f"{url_of(stack.settings.hub_socket)}/hub/api", stack.settings.secret("service_token"))
    try:
        await client.stop_server("leo", "")
        await client.stop_server("leo", "")  # it is not there any more
    finally:
        client.close()
    wait_for(lambda: "leo/" not in rows(stack))


def test_pages_say_log_in_throughout(stack):
    page = text_of(stack.http.get("/hub/login"))
    assert "Log in" in page
    assert not re.search(r"Sign in|\bLogin\b|\bLogout\b", page)
    assert 'value="Log in"' in stack.http.get("/hub/login").text.replace("'", '"')
    stack.add("mona")
    person = Browser(stack)
    person.login("mona")
    assert "Log out" in text_of(person.get("/hub/home"))


@pytest.mark.parametrize(
    ("why", "at_once"),
    [
        ("the disk had 900 MiB left, and the notebook of mia had written 3,200 MiB in the last minute", True),
        ("it was not used for 2 h, by the policy of default", False),
    ],
    ids=["disk", "idle"],
)
def test_the_user_of_a_server_that_the_platform_stopped_reads_why(stack, why, at_once):
    user = "mia" if at_once else "moe"
    stack.add(user)
    start_server(stack, user)
    stack.tell_service(stopped_for={user: (why, at_once)})
    assert stack.api("DELETE", f"/users/{user}/server").status_code in (202, 204)
    wait_for(lambda: f"{user}/" not in rows(stack))
    person = Browser(stack)
    person.login(user)
    for page in ("/hub/home", f"/hub/spawn/{user}"):
        assert f"The notebook server was stopped by the platform: {why}." in text_of(person.get(page))
    stack.tell_service(stopped_for={user: ("", False)})
    token = start_server(stack, user)
    stop_server(stack, user, token)
    assert "stopped by the platform" not in text_of(person.get("/hub/home"))

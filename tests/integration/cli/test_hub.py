"""The operator's command against a real hub: up, down, status, accounts, and what goes wrong."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from mlp_hub.cli.supervisor import procs
from mlp_hub.settings import Settings
from support.hubs.live_hub import BIN, PASSWORD, LiveHub
from support.ports import free_port
from support.waiting import PATIENCE_S, wait_for

COMPONENTS = ("hub", "service", "data", "proxy")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LiveHub, list[tuple[str, int]]]]:
    """A hub that two `up` were to start at the same time, and what each of them said and how it ended."""
    hub = LiveHub(tmp_path_factory.mktemp("hub") / "home")
    ups = [
        subprocess.Popen([str(BIN / "mlp-hub"), "up"], env=hub.env, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        yield hub, [(up.communicate(timeout=PATIENCE_S)[0], up.returncode) for up in ups]
    finally:
        hub.destroy()


@pytest.fixture(scope="module")
def hub(both: tuple[LiveHub, list[tuple[str, int]]]) -> LiveHub:
    """One hub for the tests of this file; each leaves it running."""
    hub = both[0]
    hub.token("admin")  # kept from here on: a hub that was just killed gives none
    return hub


@pytest.fixture
def two_ups(both: tuple[LiveHub, list[tuple[str, int]]]) -> list[tuple[str, int]]:
    return both[1]


def processes_of(home: Path) -> list[str]:
    """List the command lines of all processes that name this state directory."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            text = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if str(home) in text:
                found.append(text)
    return found


def answers(hub: LiveHub, user: str = "admin") -> bool:
    with contextlib.suppress(httpx.TransportError):  # the proxy may be about to listen
        return hub.call("GET", "/session", user).status_code == 200
    return False


def test_two_ups_at_once_start_one_hub(two_ups: list[tuple[str, int]]) -> None:
    assert [status for _, status in two_ups] == [0, 0]
    assert sum("already running" in text for text, _ in two_ups) == 1


def test_up_tells_where_to_go_and_who_to_be(hub: LiveHub) -> None:
    text = hub.up()
    for part in (
        hub.url,
        "admin",
        str(hub.home / "secrets" / "admin-password"),
        f"MLP_HOME={hub.home}",
        "down",
    ):
        assert part in text
    assert hub.admin_password not in text  # shown once: by now it may be another one


def test_status_tells_where_it_runs_in_a_shell_that_knows_only_its_directory(hub: LiveHub) -> None:
    other = LiveHub(hub.home)
    other.env.pop("MLP_PORT")
    assert other.status()["url"].rstrip("/") == hub.url


def test_up_on_a_running_hub_changes_nothing(hub: LiveHub) -> None:
    before = hub.pids()
    assert "already running" in hub.up()
    assert hub.pids() == before


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_killed_component_comes_back_by_itself(hub: LiveHub, component: str) -> None:
    before = hub.pids()
    hub.kill(component)
    wait_for(lambda: hub.pids()[component] not in (None, before[component]), message=component)
    wait_for(lambda: answers(hub))
    after = hub.pids()
    assert {n: p for n, p in after.items() if n != component} == {
        n: p for n, p in before.items() if n != component
    }


def test_after_the_supervisors_death_up_adopts_what_runs(hub: LiveHub) -> None:
    before = hub.pids()
    hub.kill("supervisor")
    wait_for(lambda: hub.pids()["supervisor"] is None)
    assert answers(hub)
    assert "found again" in hub.up()
    after = hub.pids()
    assert after["supervisor"] not in (None, before["supervisor"])
    assert {n: after[n] for n in COMPONENTS} == {n: before[n] for n in COMPONENTS}


def test_up_is_not_kept_away_by_a_proxy_that_its_killed_supervisor_noted_down_nowhere(hub: LiveHub) -> None:
    lost = hub.pids()["proxy"]
    hub.kill("supervisor")
    wait_for(lambda: hub.pids()["supervisor"] is None)
    Path(hub.home, "run/private/proxy.pid").unlink()
    hub.up()
    # the lost one may have answered `up` before the new supervisor ended it
    wait_for(lambda: hub.pids()["proxy"] not in (None, lost))
    wait_for(lambda: procs.start_of(lost) is None)
    wait_for(lambda: answers(hub))


def test_the_public_port_is_the_only_one_that_is_opened(hub: LiveHub) -> None:
    links = [fd for pid in hub.pids().values() for fd in Path(f"/proc/{pid}/fd").iterdir()]
    inodes = {str(fd.readlink()) for fd in links if fd.is_symlink()}
    listening = [
        line.split()[1]
        for table in ("/proc/net/tcp", "/proc/net/tcp6")
        for line in Path(table).read_text().splitlines()[1:]
        if line.split()[3] == "0A" and f"socket:[{line.split()[9]}]" in inodes
    ]
    assert listening == [f"0100007F:{hub.port:04X}"]


def test_a_changed_config_file_is_taken_over_by_the_next_up(hub: LiveHub, tmp_path: Path) -> None:
    before = hub.pids()
    config = tmp_path / "config.py"
    config.write_text("c.JupyterHub.template_vars = {'announcement': 'Backups at noon'}\n")
    hub.env["MLP_CONFIG"] = str(config)
    try:
        hub.up()
        assert "Backups at noon" in hub.http.get("/hub/login").text
        after = hub.pids()
    finally:
        del hub.env["MLP_CONFIG"]  # the next `up` of all of it leaves it behind
    assert after["hub"] != before["hub"]
    assert {n: after[n] for n in ("supervisor", "service", "proxy")} == {
        n: before[n] for n in ("supervisor", "service", "proxy")
    }


def test_an_error_of_the_hub_and_the_log_lines_about_it_have_one_id(hub: LiveHub) -> None:
    answer = hub.http.get("/hub/none/such", headers={"X-Request-ID": "of-a-client"})
    found = answer.headers["X-Request-ID"]
    assert answer.status_code == 404
    assert re.fullmatch("[0-9a-f]{16}", found)
    assert f"Request {found}" in answer.text
    log = hub.home / "log" / "hub.log"
    wait_for(lambda: any(found in line and "404" in line for line in log.read_text().splitlines()))
    answer = hub.http.get("/services/mlp/oauth_callback?code=x")  # a page of the service
    assert f"Request {answer.headers['X-Request-ID']}" in answer.text


def test_logs_are_lines_of_json_if_the_operator_wants(hub: LiveHub) -> None:
    hub.env["MLP_LOG_FORMAT"] = "json"
    try:
        hub.up()
        answer = hub.http.get("/hub/none/json")
        found = answer.headers["X-Request-ID"]
        folder = hub.home / "log"

        def lines(name: str) -> list[dict[str, str]]:
            shown = (folder / f"{name}.log").read_text().splitlines()
            return [json.loads(line) for line in shown if line.startswith("{")]

        wait_for(
            lambda: any(one.get("request_id") == found and "404" in one["message"] for one in lines("hub"))
        )
        line = next(one for one in lines("hub") if one.get("request_id") == found and "404" in one["message"])
        assert line.keys() >= {"time", "level", "logger", "message"}
        assert "/hub/none/json" in line["message"]
        for name in ("supervisor", "proxy"):
            wait_for(lambda name=name: lines(name))
    finally:
        del hub.env["MLP_LOG_FORMAT"]
        hub.up()


def test_an_unknown_setting_stops_the_start_and_names_what_is_close(hub: LiveHub, tmp_path: Path) -> None:
    config = tmp_path / "config.py"
    config.write_text("c.MLPHub.notebook_ramm = 512\n")
    other = LiveHub(tmp_path / "home", MLP_CONFIG=str(config))
    done = other.run("up", check=False)
    assert done.returncode == 2
    assert "c.MLPHub.notebook_ramm, which is no setting; close to it: notebook_ram" in done.stderr
    assert not other.home.exists()
    other.destroy()


def test_a_port_that_is_taken_names_its_owner(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        other = LiveHub(tmp_path / "home", port=taken.getsockname()[1])
        done = other.run("up", check=False)
    assert done.returncode == 3
    assert f"Port {other.port} is in use by process {os.getpid()}" in done.stderr
    assert "MLP_PORT=" in done.stderr
    assert set(other.pids().values()) == {None}
    other.destroy()


def test_a_component_that_cannot_start_shows_its_last_words_and_nothing_is_left(tmp_path: Path) -> None:
    config = tmp_path / "config.py"
    config.write_text("c.JupyterHub.db_url = 'nonsense://'\n")
    other = LiveHub(tmp_path / "home", MLP_CONFIG=str(config))
    done = other.run("up", check=False)
    assert done.returncode == 1
    assert "--- hub.log" in done.stderr
    assert "nonsense" in done.stderr
    assert re.search(r"The hub failed \d+ times: it ", done.stderr)
    assert set(other.pids().values()) == {None}
    other.destroy()


def test_supervise_stays_in_the_foreground_and_runs_beside_another_hub_and_ends_with_all_of_it(
    hub: LiveHub, tmp_path: Path
) -> None:
    other = LiveHub(tmp_path / ("deep" * 30) / "home")
    child = subprocess.Popen(
        [str(BIN / "mlp-hub"), "supervise"],
        env=other.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        wait_for(lambda: other.run("token", "--user", "admin", check=False).returncode == 0, every=0.5)
        assert other.pids()["supervisor"] == child.pid
        assert other.port != hub.port
        assert answers(hub)
        wait_for(lambda: answers(other))
        assert hub.admin_password != other.admin_password
        assert not set(hub.pids().values()) & set(other.pids().values())
        token = other.token("admin")
        refused = hub.http.get("/services/mlp/api/v1/session", headers={"Authorization": f"Bearer {token}"})
        assert refused.status_code == 401
        short = Settings.load({"MLP_HOME": str(other.home)}).run_dir
        assert short.is_dir()
        child.terminate()
        text, _ = child.communicate(timeout=PATIENCE_S)
    finally:
        child.kill()
    assert child.returncode == 0
    assert other.url in text
    assert set(other.pids().values()) == {None}
    other.down()
    assert not short.exists()
    other.destroy()
    assert answers(hub)


def test_token_prints_a_token_and_nothing_else(hub: LiveHub) -> None:
    text = hub.run("token", "--user", "admin").stdout
    assert text.count("\n") == 1
    mine = hub.http.get("/hub/api/user", headers={"Authorization": f"Bearer {text.strip()}"})
    assert mine.json()["name"] == "admin"
    told = hub.run("audit", "--action", "user.token", "--object", "admin").stdout
    assert "  mlp-operator  user.token  admin  note mlp-hub token by " in told


def test_a_token_can_be_held_to_some_scopes(hub: LiveHub) -> None:
    hub.add_user("carl")
    token = hub.run("token", "--user", "carl", "--scope", "read:users:name!user").stdout.strip()
    headers = {"Authorization": f"Bearer {token}"}
    assert hub.http.get("/hub/api/user", headers=headers).json()["name"] == "carl"
    assert hub.http.get("/services/mlp/api/v1/session", headers=headers).status_code in (401, 403)


def test_a_token_for_nobody_is_refused_with_the_way_out(hub: LiveHub) -> None:
    done = hub.run("token", "--user", "nobody-here", check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "User nobody-here does not exist" in done.stderr
    assert "mlp-hub user add nobody-here" in done.stderr


def test_user_add_makes_a_member_who_may_work_at_once(hub: LiveHub) -> None:
    hub.ok("POST", "/tenants", body={"name": "red"})
    hub.run("user", "add", "dora", "--tenant", "red", "--password-stdin", stdin=PASSWORD + "\n")
    assert hub.ok("GET", "/session", "dora")["tenants"] == ["red"]


def test_user_add_without_a_password_makes_one_up(hub: LiveHub) -> None:
    done = hub.run("user", "add", "emil")
    assert "Password: " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "stdin", "says"),
    [
        (["Über"], "long enough", "Über was not made"),
        (["frida"], "short", "it needs at least 8"),
        (["frida"], "", "password on standard input is empty"),
        (["frida", "--tenant", "none-such"], "long enough", "Team none-such does not exist"),
        (["admin"], "long enough", "admin"),
    ],
)
def test_user_add_refuses_what_cannot_be(hub: LiveHub, arguments: list[str], stdin: str, says: str) -> None:
    done = hub.run("user", "add", *arguments, "--password-stdin", stdin=stdin + "\n", check=False)
    assert done.returncode == 2
    assert says in done.stderr
    assert hub.run("token", "--user", "frida", check=False).returncode == 2


def test_logs_show_the_last_lines_of_each_component(hub: LiveHub) -> None:
    text = hub.run("logs", "--no-follow", "--tail", "3").stdout
    assert {line.split(" |")[0].strip() for line in text.splitlines()} == {*COMPONENTS, "supervisor"}
    assert hub.run("logs", "kernel", check=False).returncode == 2


def test_doctor_finds_a_running_hub_whole(hub: LiveHub) -> None:
    done = hub.run("doctor", "--json", check=False)
    found = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert {
        "sandbox",
        "cgroups",
        "mpi",
        "tensorflow",
        "gpu",
        "port",
        "names",
        "disk",
        "database",
        "node",
    } <= set(found)
    assert {
        name: found[name]["status"] for name in ("hub", "data", "database", "port", "mpi", "node")
    } == dict.fromkeys(("hub", "data", "database", "port", "mpi", "node"), "ok"), done.stdout


def test_down_without_a_supervisor_stops_the_rest_and_jobs_stop_suspends_jobs_after_it(hub: LiveHub) -> None:
    hub.submit("admin", "later", "import time\nwhile True: time.sleep(0.1)", runtime="plain")
    before = hub.wait_phase("admin", "later", "running")
    hub.kill("supervisor")
    wait_for(lambda: hub.pids()["supervisor"] is None)
    assert "1 job still running" in hub.run("down").stdout
    assert {c["pid"] for c in hub.status()["components"].values()} == {None}
    assert hub.run("status", check=False).returncode == 1
    told = hub.run("down", "--jobs", "stop").stdout
    assert "MLP Hub was not running" in told
    assert "1 running job suspended; after the next up: %mlp resume NAME" in told
    assert "stopped" not in told
    hub.up()
    after = hub.wait_phase("admin", "later", "suspended")
    assert after["uid"] == before["uid"]
    hub.ok("PUT", "/users/admin/jobs/later:resume")
    assert hub.wait_phase("admin", "later", "running")["failure"] is None
    hub.ok("PUT", "/users/admin/jobs/later:cancel")


def test_down_leaves_a_notebook_server_running_and_jobs_stop_ends_it_and_suspends_jobs(hub: LiveHub) -> None:
    headers = {"Authorization": f"Bearer {hub.token('admin')}"}
    assert hub.http.post("/hub/api/users/admin/server", headers=headers).status_code in (201, 202)
    wait_for(
        lambda: (
            hub.http.get("/hub/api/users/admin", headers=headers).json()["servers"].get("", {}).get("ready")
        )
    )
    assert "1 notebook server still running" in hub.run("down").stdout
    assert processes_of(hub.home)
    hub.up()
    assert hub.http.get("/hub/api/users/admin", headers=headers).json()["servers"][""]["ready"]
    hub.submit("admin", "long", "import time\nwhile True: time.sleep(0.1)", runtime="plain")
    hub.wait_phase("admin", "long", "running")
    hub.down(jobs="stop")
    assert processes_of(hub.home) == []
    hub.up()
    assert hub.http.get("/hub/api/users/admin", headers=headers).json()["servers"] == {}
    assert hub.wait_phase("admin", "long", "suspended")
    hub.ok("PUT", "/users/admin/jobs/long:cancel")


def test_secrets_and_databases_are_closed_to_others(hub: LiveHub) -> None:
    open_to_others = [
        str(path)
        for folder in ("secrets", "db", "log", "run/private")
        for path in ((hub.home / folder), *(hub.home / folder).iterdir())
        if (hub.home / folder).stat().st_mode & 0o077
    ]
    assert open_to_others == []
    assert free_port() != hub.port


def test_both_databases_log_ahead_so_that_a_commit_waits_for_the_disk_once(hub: LiveHub) -> None:
    for name in ("mlp", "jupyterhub"):
        with contextlib.closing(sqlite3.connect(hub.home / "db" / f"{name}.sqlite")) as database:
            assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)

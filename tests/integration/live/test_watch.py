"""`make watch` runs a real Prometheus and a real Alertmanager beside a real hub until Ctrl+C, and names each bad state."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from mlp_hub.service.monitoring.alert_rules import ALL_RULES
from mlp_hub.service.monitoring.dashboards.table import DASHBOARDS
from support.hubs.live_hub import BIN, LiveHub
from support.monitoring.alertmanager import mail_server, needs_alertmanager, webhook
from support.monitoring.prometheus import needs_prometheus
from support.ports import free_port
from support.waiting import PATIENCE_S, wait_for

pytestmark = [needs_prometheus, needs_alertmanager]
ROOT = Path(__file__).resolve().parents[3]
STOP = "Ctrl+C stops both"


class Watching:
    """Both programs beside a hub, as `make watch` runs them."""

    def __init__(
        self, hub: LiveHub, process: subprocess.Popen[str], prometheus: int, alertmanager: int
    ) -> None:
        self.root = hub.home / "monitoring"
        self.process = process
        self.prometheus, self.alertmanager = prometheus, alertmanager
        self.printed = ""

    def wait(self) -> str:
        """Return what it prints, once it says how to stop it."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.printed += line
            if STOP in line:
                return self.printed
        raise AssertionError(f"it ended with {self.process.wait(PATIENCE_S)}: {self.printed}")

    def get(self, port: int, path: str, password: str | None = None) -> Any:
        """Return an answer of one of the two, as whoever has the password."""
        word = (self.root / "password").read_text() if password is None else password
        login = base64.b64encode(f"mlp-hub:{word}".encode()).decode()
        asked = Request(f"http://127.0.0.1:{port}{path}", headers={"Authorization": f"Basic {login}"})
        with urlopen(asked, timeout=PATIENCE_S) as answer:  # noqa: S310 - its own address
            return json.load(answer)

    def targets(self) -> dict[str, str]:
        """Return the health of each job."""
        found = self.get(self.prometheus, "/api/v1/targets")["data"]["activeTargets"]
        return {one["labels"]["job"]: f"{one['health']} {one['lastError']}".strip() for one in found}

    def is_gone(self) -> bool:
        """Tell whether nobody listens at either port."""
        return not any(listens(port) for port in (self.prometheus, self.alertmanager))


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def watching(hub: LiveHub, *words: str, make: bool = False, **env: str) -> Iterator[Watching]:
    """Run both, by `make watch` or by the command that it calls."""
    ports = free_port(), free_port()
    options = [f"--prometheus-port={ports[0]}", f"--alertmanager-port={ports[1]}", "--interval=1", *words]
    command = [str(BIN / "mlp-hub"), "monitor", "start", *options]
    if make:
        command = [
            "make",
            "-C",
            str(ROOT),
            "--no-print-directory",
            "watch",
            f"BIN={BIN}",
            f"ARGS={' '.join(options)}",
        ]
    process = subprocess.Popen(
        command,
        env={**hub.env, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield Watching(hub, process, *ports)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(PATIENCE_S)
        assert process.stdout is not None
        process.stdout.close()


def test_make_watch_starts_both_with_everything_loaded_and_ctrl_c_stops_them(hub: LiveHub) -> None:
    with webhook() as (url, alerts), watching(hub, f"--webhook={url}", make=True) as both:
        printed = both.wait()
        assert f"http://127.0.0.1:{both.prometheus}" in printed
        assert f"http://127.0.0.1:{both.alertmanager}" in printed
        assert str(both.root / "password") in printed
        wait_for(lambda: set(both.targets().values()) == {"up"}, message="for the targets")
        assert set(both.targets()) == {"mlp-hub", "jupyterhub", "alertmanager"}
        (group,) = both.get(both.prometheus, "/api/v1/rules")["data"]["groups"]
        assert [rule["name"] for rule in group["rules"]] == [rule.name for rule in ALL_RULES]
        (receiver,) = both.get(both.prometheus, "/api/v1/alertmanagers")["data"]["activeAlertmanagers"]
        assert receiver["url"] == f"http://127.0.0.1:{both.alertmanager}/api/v2/alerts"
        config = both.get(both.alertmanager, "/api/v2/status")["config"]["original"]
        assert "MLPHubAbsent" in config
        assert {path.name for path in (both.root / "dashboards").iterdir()} == {
            f"mlp-hub-{one.name}.json" for one in DASHBOARDS
        }
        assert both.root.stat().st_mode & 0o077 == 0
        os.killpg(both.process.pid, signal.SIGINT)
        assert both.process.stdout is not None
        rest = both.process.stdout.read()
        assert "Prometheus and Alertmanager stop; the hub continues." in rest
        assert "Traceback" not in rest
        wait_for(both.is_gone)
    assert not alerts
    assert hub.ok("GET", "/health")["status"] == "ok"


def test_a_mail_server_that_cannot_be_used_is_named_at_the_start_with_what_to_set(hub: LiveHub) -> None:
    with mail_server("hub", "right") as (port, _):
        place = {"MLP_MAIL_SERVER": f"127.0.0.1:{port}", "MLP_MAIL_FROM": "hub@example.org"}
        with watching(hub, "--mail-to=ops@example.org", **place) as both:
            printed = both.wait()
            assert "NO ALERT IS MAILED" in printed
            assert "Set MLP_MAIL_SECURITY=none" in printed
            assert "Alerts go to" not in printed, "nobody is mailed"
        with watching(hub, "--mail-to=ops@example.org", **place, MLP_MAIL_SECURITY="none") as both:
            printed = both.wait()
            assert f"Mail goes through 127.0.0.1:{port}." in printed
            assert "Alerts go to  ops@example.org" in printed


def test_nobody_without_the_password_reads_or_silences(hub: LiveHub) -> None:
    with watching(hub) as both:
        both.wait()
        for port, path in (
            (both.prometheus, "/api/v1/query?query=up"),
            (both.alertmanager, "/api/v2/silences"),
        ):
            with pytest.raises(HTTPError, match="401"):
                both.get(port, path, "")
            with pytest.raises(HTTPError, match="401"):
                both.get(port, path, "wrong")
            assert both.get(port, path) is not None


def test_a_second_start_takes_the_same_token_and_one_that_was_revoked_is_made_again(hub: LiveHub) -> None:
    tokens = []
    for content in (None, None, "revoked0123456789"):
        with watching(hub) as both:
            if content is not None:
                (both.root / "token").write_text(content)
            both.wait()
            wait_for(lambda both=both: both.targets().get("mlp-hub") == "up")
            tokens.append((both.root / "token").read_text())
    assert tokens[0] == tokens[1]
    assert tokens[2] != "revoked0123456789"


def test_a_killed_command_leaves_nothing_behind(hub: LiveHub) -> None:
    with watching(hub) as both:
        both.wait()
        both.process.kill()
        wait_for(both.is_gone)


def test_one_that_dies_ends_the_other_with_a_reason(hub: LiveHub) -> None:
    with watching(hub) as both:
        both.wait()
        pid = listener(both.alertmanager)
        os.kill(pid, signal.SIGKILL)
        assert both.process.stdout is not None
        rest = both.process.stdout.read()
        assert both.process.wait(PATIENCE_S) == 1
        assert "Alertmanager ended with status -9." in rest
        assert str(both.root / "alertmanager.log") in rest
        wait_for(both.is_gone)


def listener(port: int) -> int:
    """Return the process that listens at a port."""
    from mlp_hub.cli.state.ports import owner

    return int(owner(port).split()[1])


def test_two_at_once_beside_one_hub_are_refused(hub: LiveHub) -> None:
    with watching(hub) as both:
        both.wait()
        second = hub.run(
            "monitor",
            "start",
            "--prometheus-port",
            str(free_port()),
            "--alertmanager-port",
            str(free_port()),
            check=False,
        )
        assert second.returncode == 1
        assert "run beside this hub already" in second.stderr


def test_a_taken_port_is_named_with_its_owner(hub: LiveHub) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for option, name in (("--prometheus-port", "Prometheus"), ("--alertmanager-port", "Alertmanager")):
            done = hub.run("monitor", "start", option, str(port), check=False)
            assert done.returncode == 3
            if f"for {name}" in done.stderr:
                assert f"Port {port}, for {name}, is in use by process {os.getpid()}" in done.stderr
                assert f"choose another port with {option} PORT" in done.stderr


def test_absent_programs_are_named_with_the_way_to_get_them(hub: LiveHub, tmp_path: Path) -> None:
    env = {**hub.env, "PATH": str(tmp_path)}
    for name, programs in (("Prometheus", ()), ("Alertmanager", ("prometheus",))):
        for program in programs:
            (tmp_path / program).write_text("#!/bin/sh\n")
            (tmp_path / program).chmod(0o755)
        done = subprocess.run(
            [str(BIN / "mlp-hub"), "monitor", "start"], env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 3
        assert f"{name} is not installed here." in done.stderr
        assert "apt-get install prometheus prometheus-alertmanager" in done.stderr


def test_without_a_hub_there_is_nothing_to_watch(hub: LiveHub, tmp_path: Path) -> None:
    done = subprocess.run(
        [str(BIN / "mlp-hub"), "monitor", "start"],
        env={**hub.env, "MLP_HOME": str(tmp_path / "none")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"{tmp_path / 'none'} has no hub" in done.stderr
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--mail-to", "ops@example.org"), "--mail-to needs a mail server, and this hub has none."),
        (("--mail-to", "nobody"), "--mail-to 'nobody' is not an address."),
        (("--mail-to", "a@b.c, d@e.f"), "is not an address."),
        (("--mail-to", "a@b.c\nBcc: d@e.f"), "is not an address."),
        (("--webhook", "file:///etc/passwd"), "--webhook 'file:///etc/passwd' is not an address."),
        (("--webhook", "http://"), "--webhook 'http://' is not an address."),
        (("--webhook", "http://[::1/"), "is not an address."),
        (("--webhook-file", "/nowhere/hooks"), "--webhook-file /nowhere/hooks cannot be read"),
        (("--prometheus-port", "70000"), "--prometheus-port is 70000; a port is from 1 to 65535."),
        (("--prometheus-port", "9093"), "Both ports are 9093; give each program its own."),
        (("--interval", "0"), "--interval and --keep-days are at least 1."),
    ],
)
def test_words_that_cannot_be_are_refused_before_anything_starts(
    hub: LiveHub, words: tuple[str, ...], said: str
) -> None:
    done = hub.run("monitor", "start", *words, check=False)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_dashboards_are_written_and_a_file_in_their_place_is_named(hub: LiveHub, tmp_path: Path) -> None:
    place = tmp_path / "new" / "dashboards"
    printed = hub.run("monitor", "dashboards", str(place)).stdout.split()
    assert printed == [str(place / f"mlp-hub-{one.name}.json") for one in DASHBOARDS]
    assert all(json.loads(Path(path).read_text())["title"].startswith("MLP Hub / ") for path in printed)
    refused = hub.run("monitor", "dashboards", printed[0], check=False)
    assert refused.returncode == 1
    assert "The dashboards cannot be written" in refused.stderr

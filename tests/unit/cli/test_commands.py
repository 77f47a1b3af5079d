"""The command line: what it accepts, and how it ends."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mlp_hub import sandbox
from mlp_hub.cli.doctor import machine as checks_machine
from mlp_hub.cli.lifecycle.grounds import check_sandbox
from mlp_hub.cli.lifecycle.up import stop_command
from mlp_hub.cli.main import run
from mlp_hub.cli.state import database
from mlp_hub.sandbox import Capabilities, Missing
from mlp_hub.sandbox.wayout import WayOut
from mlp_hub.settings import Settings, table


def test_all_settings_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(["--settings"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert all(row.variable in text and row.doc in text for row in table())


def test_a_setting_that_cannot_be_ends_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLP_PORT", "none")
    assert run(["status"]) == 2
    assert "MLP_PORT is 'none'; it must be a whole number" in capsys.readouterr().err


def test_attack_what_a_failure_names_steers_no_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLP_HOME", str(tmp_path / "home"))
    assert run(["restore", str(tmp_path / "b\x1b]0;gone\x07\u202e")]) == 1
    said = capsys.readouterr().err
    assert said.replace("\n", "").isprintable(), repr(said)


def test_jobs_may_be_kept_or_stopped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JOBS", "all")
    assert run(["down"]) == 2
    assert "JOBS is all; it must be keep or stop" in capsys.readouterr().err


def test_down_where_nothing_ever_was_is_fine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLP_HOME", "/nowhere/at/all")
    monkeypatch.delenv("JOBS", raising=False)
    assert run(["down"]) == 0
    assert "nothing runs" in capsys.readouterr().out


def test_without_a_hub_a_token_cannot_be_had(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLP_HOME", "/nowhere/at/all")
    assert run(["token", "--user", "ann"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "/nowhere/at/all has no hub" in captured.err


def test_a_machine_without_a_sandbox_is_refused_with_what_to_install() -> None:
    nothing = Capabilities(
        mode=None, missing=(Missing("bubblewrap", "no walls", "apt-get install bubblewrap"),)
    )
    with pytest.raises(Exception, match="no sandbox") as caught:
        check_sandbox(Settings.load({"MLP_HOME": "/h"}), nothing)
    assert caught.value.status == 3  # type: ignore[attr-defined]
    assert "apt-get install bubblewrap" in caught.value.text()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("way", "missing", "network", "status", "words"),
    [
        (WayOut("/s", "tenant", True), (), "outbound", "ok", "as each user, without rights"),
        (
            WayOut("/s", "root", True),
            (Missing("slirp4netns as the user's own", "as root", "x"),),
            "outbound",
            "warn",
            "as root",
        ),
        (
            WayOut("/s", "root", True),
            (Missing("slirp4netns as the user's own", "as root", "x"),),
            "none",
            "ok",
            "as root",
        ),
        (
            WayOut("/s", "tenant", False),
            (Missing("slirp4netns with seccomp", "any call", "x"),),
            "outbound",
            "warn",
            "any call",
        ),
        (None, (Missing("/dev/net/tun", "none", "modprobe tun"),), "outbound", "warn", "no outbound network"),
    ],
)
def test_the_doctor_tells_as_whom_slirp4netns_runs_and_warns_where_it_could_do_more_than_it_need(
    monkeypatch: pytest.MonkeyPatch,
    way: WayOut | None,
    missing: tuple[Missing, ...],
    network: str,
    status: str,
    words: str,
) -> None:
    found = Capabilities("root-userns", wayout=way, missing=missing)
    monkeypatch.setattr(sandbox, "capabilities", lambda: found)
    settings = Settings.load({"MLP_HOME": "/h", "MLP_NOTEBOOK_NETWORK": network})
    check = checks_machine.network(settings)
    assert (check.status, words in check.found) == (status, True), check


def test_the_doctor_warns_where_system_calls_are_not_filtered(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = Missing(
        "system call filter", "programs may use every system call", "apt-get install libseccomp2"
    )
    monkeypatch.setattr(
        sandbox,
        "capabilities",
        lambda: Capabilities("root-userns", bwrap_version="0.8.0", missing=(lacking,)),
    )
    found = checks_machine.sandbox(Settings.load({"MLP_HOME": "/h"}))
    assert [(check.status, check.remedy) for check in found] == [
        ("ok", ""),
        ("warn", "apt-get install libseccomp2"),
    ]
    assert "system calls not filtered" in found[0].found


def test_a_machine_without_a_sandbox_is_used_when_told_so() -> None:
    settings = Settings.load({"MLP_HOME": "/h", "MLP_ALLOW_NO_SANDBOX": "1"})
    assert "not kept apart" in check_sandbox(settings, Capabilities(mode="open"))


def test_a_machine_that_cannot_start_anything_is_refused_though_no_sandbox_was_asked_for() -> None:
    settings = Settings.load({"MLP_HOME": "/h", "MLP_ALLOW_NO_SANDBOX": "1"})
    closed = Missing("an environment that all can read", "/root is closed", "put it into /opt")
    with pytest.raises(Exception, match="no sandbox") as caught:
        check_sandbox(settings, Capabilities(mode=None, missing=(closed,)))
    assert "put it into /opt" in caught.value.text()  # type: ignore[attr-defined]


def test_the_cheap_look_at_the_newest_revisions_is_right(tmp_path: Path) -> None:
    from alembic.script import ScriptDirectory
    from jupyterhub.dbutil import ALEMBIC_DIR

    from mlp_hub.store import migrate

    settings = Settings.load({"MLP_HOME": str(tmp_path)})
    assert database.platform(settings).newest == database.newest_revision() == migrate.head()
    assert database.hub(settings).newest == ScriptDirectory(ALEMBIC_DIR).get_current_head()


def test_the_command_line_imports_nothing_that_is_slow() -> None:
    import subprocess

    code = (
        "import sys; from mlp_hub.cli.main import _parser; _parser();"
        "print(sorted({'tornado', 'sqlalchemy', 'alembic', 'jupyterhub', 'asyncio', 'traitlets'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_line_that_stops_a_hub_names_which_hub_and_works_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {"MLP_HOME": "state of mine", "MLP_PORT": "8001", "PATH": "/bin"}
    settings = Settings.load(environ)
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    program = ".venv/bin/mlp-hub"
    named = f"MLP_HOME='{settings.home}' MLP_PORT=8001"
    assert stop_command(settings, environ, program) == f"{named} {tmp_path}/.venv/bin/mlp-hub down"
    (tmp_path / "Makefile").touch()
    assert stop_command(settings, environ, program) == f"{named} make -C {tmp_path} down"
    assert stop_command(settings, {}, "mlp-hub") == "mlp-hub down"


def test_the_line_that_stops_a_hub_finds_its_file_of_settings_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text("c.MLPHub.port = 9000\n")
    monkeypatch.chdir(tmp_path)
    environ = {"MLP_CONFIG": "mine.py"}
    line = stop_command(Settings.load(environ), environ, "mlp-hub")
    assert line == f"MLP_CONFIG={tmp_path}/mine.py mlp-hub down"

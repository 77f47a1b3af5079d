"""A dump of a real hub has what a maintainer needs, and none of the secrets, names and programs that were planted."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import tarfile
from pathlib import Path
from typing import Any

from mlp_hub.settings import Settings
from support.hubs.live_hub import BIN, PASSWORD, LiveHub

PERSON, TEAM, JOB = "gertrude-stein", "alice-b-toklas", "tender-buttons"
PLANTED = ("rose_is_a_rose", "planted-in-env-4711", "a-carafe-that-is", "blind.glass")


def dump(env: dict[str, str], file: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "mlp-hub"), "debug-dump", str(file), *more]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def contents(file: Path) -> dict[str, str]:
    with tarfile.open(file) as archive:
        return {
            member.name.removeprefix("mlp-hub-debug/"): archive.extractfile(member).read().decode()  # type: ignore[union-attr]
            for member in archive
        }


def part(found: dict[str, str], name: str) -> Any:
    return json.loads(found[f"{name}.json"])


def test_a_dump_has_what_is_needed_and_nothing_that_was_planted(hub: LiveHub, tmp_path: Path) -> None:
    hub.ok("POST", "/tenants", body={"name": TEAM, "cpu": 1, "description": "the blind.glass project"})
    hub.add_user(PERSON, tenant=TEAM)
    code = "rose_is_a_rose = 1\nprint(rose_is_a_rose)\nraise SystemExit('a-carafe-that-is')"
    hub.submit(PERSON, JOB, code, cpu=0.1, ram=256, env={"API_TOKEN": "planted-in-env-4711"})
    hub.wait_phase(PERSON, JOB, "failed")
    hub.submit(PERSON, f"{JOB}-2", "import time; time.sleep(600)", cpu=0.1, ram=256)
    hub.call("GET", f"/users/{PERSON}/jobs/{JOB}?token=planted-in-env-4711", PERSON)
    with (Settings.load(hub.env).log_dir / "hub.log").open("a") as log:
        log.write(f"[E] {PERSON}/{JOB} Authorization: token {hub.token(PERSON)}\n")
    file = tmp_path / "dump.tar.gz"
    done = dump(hub.env, file)
    assert done.returncode == 0, done.stdout + done.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    found = contents(file)
    hub.call("PUT", f"/users/{PERSON}/jobs/{JOB}-2:cancel", PERSON)

    assert {"versions.json", "settings.json", "doctor.json", "status.json", "databases.json"} <= found.keys()
    assert {"log/hub.log", "log/service.log", "log/proxy.log"} <= found.keys()
    assert part(found, "versions")["packages"]["mlp-hub"]
    assert part(found, "settings")["MLP_PORT"] == str(hub.port)
    assert part(found, "databases")["platform"]["rows"]["job"] >= 2
    assert part(found, "status")["components"]["service"]["threads"] > 0
    waiting = part(found, "queue")
    assert any(entry["user"].startswith("user-") for entry in waiting)

    whole = "\n".join(found.values())
    secrets = [
        line
        for secret in Settings.load(hub.env).secrets_dir.iterdir()
        for line in [secret.read_bytes().decode(errors="replace").strip(), secret.read_bytes().hex()]
    ]
    for planted in (*PLANTED, PERSON, TEAM, JOB, PASSWORD, hub.token(PERSON), hub.token("admin"), *secrets):
        assert planted not in whole, planted

    again = dump(hub.env, file)
    assert again.returncode == 1
    assert "exists" in again.stderr


def test_without_a_database_nothing_that_has_names_leaves(tmp_path: Path) -> None:
    home, file = tmp_path / "home", tmp_path / "dump.tar.gz"
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("MLP_")}, "MLP_HOME": str(home)}
    missing = dump(env, file)
    assert missing.returncode == 1
    assert "There is no hub" in missing.stderr
    assert not file.exists()
    (home / "log").mkdir(parents=True)
    (home / "log" / "service.log").write_text(f"{PERSON} was here\n")
    (home / "db").mkdir()
    (home / "db" / "mlp.sqlite").write_bytes(b"torn" * 1000)
    done = dump(env, file)
    assert done.returncode == 0, done.stderr
    assert "names cannot be replaced: logs and the queue are left out" in done.stdout
    found = contents(file)
    assert "versions.json" in found
    assert not [name for name in found if name.startswith("log/") or name == "queue.json"]
    assert PERSON not in "\n".join(found.values())


def test_a_dump_without_a_place_or_with_a_wrong_number_says_so_and_leaves_nothing(
    hub: LiveHub, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    for parent in ("no", "file"):
        nowhere = dump(hub.env, tmp_path / parent / "dump.tar.gz")
        assert nowhere.returncode == 1
        assert "cannot be written" in nowhere.stderr
        assert "Traceback" not in nowhere.stderr
    wrong = dump(hub.env, tmp_path / "dump.tar.gz", "--lines", "-1")
    assert wrong.returncode == 2
    assert [path.name for path in tmp_path.iterdir()] == ["file"]

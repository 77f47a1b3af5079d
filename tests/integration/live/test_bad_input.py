"""A clear refusal or a clear failure; everyone else unharmed; nothing left behind."""

from __future__ import annotations

import http.client
import json
from pathlib import Path

import pytest

from support.hubs.live_hub import LiveHub
from support.waiting import PATIENCE_S, wait_for

CGROUPS = Path("/sys/fs/cgroup")


def refused(hub: LiveHub, body: dict, user: str = "ann") -> tuple[str, str]:
    answer = hub.call("POST", f"/users/{user}/jobs", user, body)
    assert answer.status_code == 403, answer.text
    return answer.json()["reason"], answer.json()["msg"]


@pytest.mark.parametrize(
    ("body", "reason", "words"),
    [
        ({"name": "a", "entry": "nowhere.py"}, "Invalid", ["nowhere.py"]),
        ({"name": "a", "entry": "../bob/secret.py"}, "Invalid", ["../bob/secret.py"]),
        ({"name": "a", "entry": "/etc/passwd"}, "Invalid", ["/etc/passwd"]),
        ({"name": "a", "code": "1", "runtime": "spark"}, "Invalid", ["spark", "mpi", "tf", "plain"]),
        ({"name": "a", "code": "1", "cpu": 10_000}, "ExceedsMaxQuota", ["10000"]),
        ({"name": "a", "code": "1", "workers": 5000}, "ExceedsMaxQuota", ["5000"]),
        ({"name": "a", "code": "1", "gpu": 1, "gpu_kind": "h900"}, "NoMatchingFlavor", ["h900"]),
        ({"name": "Bad Name", "code": "1"}, "Invalid", ["name", "such as lr-0.001"]),
        ({"name": "-x", "code": "1"}, "Invalid", ["name", "beginning with a letter, a digit or _"]),
        ({"name": "..", "code": "1"}, "Invalid", ["name", "beginning with a letter, a digit or _"]),
        ({"name": "a", "code": "1", "colour": "red"}, "Invalid", ["colour"]),
        ({"name": "a", "code": "1", "cpu": -1}, "Invalid", ["cpu"]),
        ({"name": "a", "code": "1", "tenant": "no-such-team"}, "NotFound", ["no-such-team"]),
        ({"name": "a", "code": "1", "priority": "urgent"}, "Invalid", ["urgent", "high"]),
        ({"name": "a"}, "Invalid", ["entry", "code"]),
    ],
)
def test_an_impossible_request_is_refused_with_a_valid_form(
    hub: LiveHub, body: dict, reason: str, words: list[str]
) -> None:
    got, msg = refused(hub, body)
    assert got == reason, msg
    assert all(word in msg for word in words), msg
    assert hub.call("GET", "/users/ann/jobs/a", "ann").status_code == 403


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/users/ann/jobs", b'{"extra": 1}'),
        ("POST", "/users/bob/jobs", b'{"name": "x", "code": "1"}'),
        ("PUT", "/users/ann/jobs/nowhere:cancel", b"{}"),
        ("PUT", "/users/ann/jobs/nowhere:resubmit", b'{"cpu": "x"}'),
        ("POST", "/users/ann/jobs", b"[" * 3_000_000),
        ("POST", "/users/ann/jobs", b"[" * 30_000_000),
    ],
    ids=["bad", "foreign", "cancel", "resubmit", "large", "larger"],
)
def test_a_client_that_ends_its_connection_is_told_why_it_was_refused(
    hub: LiveHub, method: str, path: str, body: bytes
) -> None:
    """As most programs without a library do. The answer is the service's, not the proxy's about a service that is gone."""
    headers = {"Authorization": f"Bearer {hub.token('ann')}", "Connection": "close"}
    headers["Content-Type"] = "application/json"
    for _ in range(60 if len(body) < 1_000_000 else 5):
        connection = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=PATIENCE_S)
        connection.request(method, f"/services/mlp/api/v1{path}", body, headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        assert (answer.status, answer.getheader("Content-Type")) == (403, "application/json"), text
        assert json.loads(text)["msg"]


def test_a_name_whose_run_has_not_ended_is_refused_with_it(hub: LiveHub) -> None:
    hub.submit("ann", "taken", "import time; time.sleep(600)", cpu=0.2, ram=128)
    reason, msg = refused(hub, {"name": "taken", "code": "pass"})
    assert reason == "Conflict"
    assert msg.startswith("taken run 1 has not ended")
    hub.ok("PUT", "/users/ann/jobs/taken:cancel", "ann")
    hub.wait_phase("ann", "taken", "cancelled")


def test_a_syntax_error_in_rank_0_fails_the_gang_and_shows_the_line(hub: LiveHub) -> None:
    hub.submit("ann", "syntax", "import os\ndef broken(:\n", runtime="mpi", workers=2, cpu=0.5, ram=256)
    failure = hub.wait_phase("ann", "syntax", "failed")["failure"]
    assert (failure["cause"], failure["exit_code"]) == ("program-error", 1)
    assert "def broken(:" in failure["tail"]
    assert "SyntaxError" in failure["tail"]


def test_a_flooded_log_is_bounded_and_the_end_is_kept(hub: LiveHub) -> None:
    code = "for i in range(400_000): print('x' * 100, i)\nprint('the end')"
    hub.submit("ann", "flood", code, cpu=1, ram=256)
    hub.wait_phase("ann", "flood", "finished")
    logs = list((hub.home / "mlp" / "jobs" / "ann" / "flood" / "log").iterdir())
    assert sum(f.stat().st_size for f in logs) < 32 << 20
    assert (
        "the end" in hub.call("GET", "/users/ann/jobs/flood/logs", "ann", params={"rank": 0, "tail": 5}).text
    )


def test_a_fork_bomb_hurts_only_itself(hub: LiveHub) -> None:
    code = (
        "import os, time\n"
        "n = 0\n"
        "try:\n"
        "    for _ in range(5000):\n"
        "        if os.fork() == 0:\n"
        "            time.sleep(600)\n"
        "        n += 1\n"
        "except OSError as error:\n"
        "    print('stopped after', n, error)\n"
        "    os._exit(3)\n"
    )
    hub.submit("ann", "bomb", code, cpu=0.5, ram=512)
    hub.submit("bob", "neighbour", "print('fine')", cpu=0.2, ram=128)
    assert "fine" in (hub.wait_phase("bob", "neighbour", "finished") and hub.log("bob", "neighbour"))
    job = hub.wait_phase("ann", "bomb", "failed")
    assert "stopped after" in hub.log("ann", "bomb")
    assert job["failure"]["exit_code"] == 3
    assert_clean(hub, job["uid"])


def test_a_program_that_fills_memory_is_ended_alone_and_told_so(hub: LiveHub) -> None:
    hub.submit("bob", "steady", "import time; time.sleep(4); print('fine')", cpu=0.2, ram=128)
    hub.submit("ann", "hog", "b = []\nwhile True: b.append(bytearray(8 << 20))", cpu=0.5, ram=200)
    job = hub.wait_phase("ann", "hog", "failed")
    assert job["failure"]["cause"] == "out-of-memory"
    assert "200" in job["failure"]["message"]
    hub.wait_phase("bob", "steady", "finished")
    assert_clean(hub, job["uid"])


def test_a_job_beyond_its_time_limit_is_ended_and_told_so(hub: LiveHub) -> None:
    hub.submit("ann", "slow", "import time; time.sleep(600)", cpu=0.2, ram=128, time_limit=2)
    job = hub.wait_phase("ann", "slow", "failed")
    assert job["failure"]["cause"] == "time-limit"
    assert_clean(hub, job["uid"])


def assert_clean(hub: LiveHub, uid: str) -> None:
    """Nothing of the attempt is left: processes, cgroups, run directories."""
    import psutil

    def clean() -> bool:
        processes = [
            p for p in psutil.process_iter(["cmdline"]) if any(uid in c for c in p.info["cmdline"] or [])
        ]
        groups = [g for g in CGROUPS.glob("*/**/") if uid in g.name]
        runs = [d for d in hub.home.glob("jobs-run/*") if uid in d.name]
        return not processes and not groups and not runs

    wait_for(clean, message="for processes, cgroups and run directories to go")

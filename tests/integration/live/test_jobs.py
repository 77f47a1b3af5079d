"""Jobs of every runtime on the real platform, and what their users do with them."""

from __future__ import annotations

import pytest

from support.hubs.live_hub import LiveHub, tenant_use
from support.waiting import wait_for

LONG = "import time\nprint('up', flush=True)\ntime.sleep(600)\n"
SMALL = {"cpu": 0.2, "ram": 128}


def test_an_mpi_job_of_two_ranks_computes_together(hub: LiveHub) -> None:
    code = "from mpi4py import MPI\nc = MPI.COMM_WORLD\nprint('sum', c.allreduce(c.rank + 1), 'of', c.size)"
    hub.submit("ann", "sum", code, workers=2, cpu=0.5, ram=256)
    job = hub.wait_phase("ann", "sum", "finished")
    assert job["runtime"] == "mpi"
    assert [(r["rank"], r["state"], r["exit_code"]) for r in job["ranks"]] == [
        (0, "finished", 0),
        (1, "finished", 0),
    ]
    for rank in (0, 1):
        assert "sum 3 of 2" in hub.log("ann", "sum", rank)


def test_a_program_gets_what_the_contract_promises(hub: LiveHub) -> None:
    code = "import os\nfor k in sorted(os.environ):\n    if k.startswith('MLP_'): print(k, os.environ[k] if 'TOKEN' not in k else '-')\nprint(os.listdir('/workspace'))"
    hub.submit("ann", "env", code, env={"COLOUR": "red"}, **SMALL)
    hub.wait_phase("ann", "env", "finished")
    log = hub.log("ann", "env")
    for line in (
        "MLP_JOB env",
        "MLP_RUN 1",
        "MLP_USER ann",
        "MLP_TENANT default",
        "MLP_RANK 0",
        "MLP_WORLD_SIZE 1",
        "MLP_RESTART_COUNT 0",
        "MLP_CHECKPOINT_DIR /workspace/ckpt",
        "MLP_API_URL",
        "MLP_JOB_TOKEN -",
    ):
        assert line in log, log


def test_each_run_of_a_name_has_its_own_files_log_and_points(hub: LiveHub) -> None:
    code = (
        "import os, mlp\n"
        "mark = os.path.join(os.environ['MLP_CHECKPOINT_DIR'], 'mark')\n"
        "print('found', os.path.exists(mark), 'in run', os.environ['MLP_RUN'])\n"
        "open(mark, 'w').write('x')\n"
        "mlp.report(loss=float(os.environ['MLP_RUN']))\n"
    )
    for run in (1, 2):
        assert hub.submit("ann", "Lr_0.1", code, **SMALL)["run"] == run
        hub.wait_phase("ann", f"Lr_0.1@{run}", "finished")
    for run in (1, 2):
        assert f"found False in run {run}" in hub.log("ann", f"Lr_0.1@{run}")
        assert [p["values"]["loss"] for p in hub.points("ann", f"Lr_0.1@{run}")] == [float(run)]
    again = hub.submit("ann", "Lr_0.1", code, replace=True, **SMALL)
    assert again["run"] == 3
    hub.wait_phase("ann", "Lr_0.1", "finished")
    wait_for(lambda: [j["run"] for j in hub.ok("GET", "/users/ann/jobs?name=Lr_0.1", "ann")] == [3])


def test_cancel_stops_a_running_job_and_gives_its_quota_back(hub: LiveHub) -> None:
    before = tenant_use(hub)
    hub.submit("ann", "stop-me", LONG, **SMALL)
    hub.wait_phase("ann", "stop-me", "running")
    hub.ok("PUT", "/users/ann/jobs/stop-me:cancel", "ann")
    hub.wait_phase("ann", "stop-me", "cancelled")
    assert tenant_use(hub) == before


def test_suspend_lets_the_program_save_and_resume_continues_from_there(hub: LiveHub) -> None:
    code = (
        "import os, signal, sys, time\n"
        "mark = os.path.join(os.environ['MLP_CHECKPOINT_DIR'], 'mark')\n"
        "if os.path.exists(mark):\n"
        "    print('went on from', open(mark).read()); sys.exit(0)\n"
        "def save(*_):\n"
        "    open(mark, 'w').write('here'); sys.exit(1)\n"
        "signal.signal(signal.SIGTERM, save)\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)\n"
    )
    before = tenant_use(hub)
    hub.submit("ann", "nap", code, **SMALL)
    wait_for(lambda: "ready" in hub.log("ann", "nap"))
    hub.ok("PUT", "/users/ann/jobs/nap:suspend", "ann")
    hub.wait_phase("ann", "nap", "suspended")
    assert tenant_use(hub) == before
    hub.ok("PUT", "/users/ann/jobs/nap:resume", "ann")
    job = hub.wait_phase("ann", "nap", "finished")
    assert "went on from here" in hub.log("ann", "nap")
    assert job["failure"] is None


def test_delete_removes_a_finished_job_and_its_name_is_free_again(hub: LiveHub) -> None:
    hub.submit("ann", "gone", "pass", **SMALL)
    answer = hub.call("DELETE", "/users/ann/jobs/gone", "ann")
    if answer.status_code == 403:
        assert answer.json()["reason"] == "WrongState"
    hub.wait_phase("ann", "gone", "finished")
    hub.ok("DELETE", "/users/ann/jobs/gone", "ann")
    wait_for(lambda: hub.call("GET", "/users/ann/jobs/gone", "ann").status_code == 403)
    assert not (hub.home / "mlp" / "jobs" / "ann" / "gone").exists()
    hub.submit("ann", "gone", "pass", **SMALL)
    hub.wait_phase("ann", "gone", "finished")


def test_a_second_job_waits_for_the_quota_with_numbers_and_starts_when_it_is_raised(hub: LiveHub) -> None:
    hub.ok("POST", "/tenants", body={"name": "narrow", "cpu": 1, "ram": 2048})
    hub.ok("PUT", "/tenants/narrow/members/bob", body={"role": "member"})
    hub.submit("bob", "first", LONG, tenant="narrow", cpu=1, ram=128)
    hub.wait_phase("bob", "first", "running")
    hub.submit("bob", "second", "print('at last')", tenant="narrow", cpu=1, ram=128)

    def reason() -> dict | None:
        why = hub.ok("GET", "/users/bob/jobs/second/why", "bob")
        return why if why["reasons"] else None

    why = wait_for(reason)
    assert why["reasons"][0]["reason"] == "WaitingForQuota"
    assert why["reasons"][0]["message"] == "Needs 1 cpu, 0 free. Starts when jobs of narrow end."
    assert "job first of bob" in str(why["reasons"][0]["facts"])
    assert why["position"] == 1
    hub.ok("PUT", "/tenants/narrow", body={"cpu": 2, "ram": 2048})
    hub.wait_phase("bob", "second", "finished")
    hub.ok("PUT", "/users/bob/jobs/first:cancel", "bob")
    hub.wait_phase("bob", "first", "cancelled")


@pytest.mark.parametrize("ps", [0, 1])
def test_tensorflow_gets_its_cluster_and_ps_are_stopped_with_the_chief(hub: LiveHub, ps: int) -> None:
    code = (
        "import json, os, time\n"
        "c = json.loads(os.environ['TF_CONFIG'])\n"
        "print(c['task'], {k: len(v) for k, v in c['cluster'].items()}, flush=True)\n"
        "if c['task']['type'] == 'ps': time.sleep(600)\n"
    )
    hub.submit("ann", f"tf-{ps}", code, runtime="tf", workers=2, ps=ps, cpu=0.2, ram=128)
    job = hub.wait_phase("ann", f"tf-{ps}", "finished")
    assert len(job["ranks"]) == 2 + ps
    assert "'chief'" in hub.log("ann", f"tf-{ps}") or "'worker'" in hub.log("ann", f"tf-{ps}")


def test_a_program_file_from_the_home_directory_runs_with_its_arguments(hub: LiveHub) -> None:
    home = hub.home / "homes" / "ann"
    hub.submit(
        "ann", "make-file", "open('/home/ann/prog.py', 'w').write('import sys; print(sys.argv[1:])')", **SMALL
    )
    hub.wait_phase("ann", "make-file", "finished")
    assert (home / "prog.py").exists()
    hub.ok(
        "POST",
        "/users/ann/jobs",
        "ann",
        {"name": "from-file", "entry": "prog.py", "args": ["--epochs", "5"], **SMALL},
    )
    hub.wait_phase("ann", "from-file", "finished")
    assert "['--epochs', '5']" in hub.log("ann", "from-file")


def test_the_seeds_own_paths_answer_the_same_at_the_root(hub: LiveHub) -> None:
    headers = {"Authorization": f"Bearer {hub.token('ann')}"}
    answer = hub.http.get("/api/v1/auth", headers=headers)
    assert (answer.status_code, answer.json()) == (200, "ann")
    assert hub.http.get("/api/v1/auth").status_code == 401

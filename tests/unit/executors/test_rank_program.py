"""The program of a rank as its pod runs it: alone with the files that travel there, and no package of the hub."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mlp_hub.domain.resources import Resources
from mlp_hub.domain.runtime.runtime import BUILT_IN
from mlp_hub.executors.base import Code, LaunchSpec
from mlp_hub.executors.kubernetes import records
from mlp_hub.executors.kubernetes.gang import describe
from mlp_hub.executors.kubernetes.gang.files import paths
from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.kubernetes.operators import OperatorWays
from mlp_hub.executors.kubernetes.rank import mpi, peers, places
from mlp_hub.executors.kubernetes.rank.told import OwnPlan
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.executors.shared_volume.logs import read_log
from mlp_hub.executors.workspace import CODE
from support.waiting import wait_for

OLDEST = (3, 9)


@dataclass
class Pod:
    """Where a pod's files are, on this machine."""

    root: Path
    files: Mapping[str, str]
    plan: dict[str, Any]

    @property
    def log(self) -> Path:
        return self.root / "log"

    def begin(self, rank: int = 0, most_bytes: int = 0, **env: str) -> subprocess.Popen[bytes]:
        (self.root / "files" / "plan.json").write_text(json.dumps(self.plan))
        limit = ["prlimit", f"--fsize={most_bytes}"] if most_bytes else []
        return subprocess.Popen(
            [*limit, sys.executable, "-IS", str(self.root / "files" / "start.py")],
            env={"PATH": os.environ["PATH"], "MLP_FIRST_RANK": "0", "MLP_INDEX": str(rank),
                 "MLP_RANK_FILES": str(self.root / "files"), **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, rank: int = 0) -> tuple[int, str, str]:
        process = self.begin(rank)
        out, err = process.communicate(timeout=120)
        return process.returncode, out.decode(), err.decode()

    def report(self, rank: int = 0) -> dict[str, Any]:
        return json.loads((self.log / f"a-1.{rank}.json").read_text())

    def lines(self, rank: int = 0) -> list[tuple[str, str]]:
        return [(line.stream, line.text) for line in read_log(str(self.root), rank).lines]


def pod(root: Path, code: str, workers: int = 1, **plan: Any) -> Pod:
    spec = LaunchSpec(
        attempt="a-1", job="digits", run=1, user="ann", uid=300_001, tenant="red", runtime=BUILT_IN["plain"],
        workers=workers, ps=0, per_worker=Resources(cpu=1000, ram=64), placement=(), program=Code(code),
        args=(), env={"MLP_JOB": "digits"}, grace_s=20.0,
    )  # fmt: skip
    at = Installation(root, Directories(root / "homes", root / "jobs"), {}, "image:1", ("mlp", 80))
    files = describe(spec, at, OperatorWays(), "digits").files
    for key, path in paths().items():
        file = root / "files" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(files[key])
    told = json.loads(files["plan.json"])
    (root / "main.py").write_text(code)
    told["program"] = [word.replace(CODE, str(root / "main.py")) for word in told["program"]]
    told |= {"log": str(root / "log"), "home": str(root), "hosts": ["localhost"] * workers} | plan
    return Pod(root, files, told)


def test_files_shipped_to_pods_parse_with_the_oldest_supported_python(tmp_path: Path) -> None:
    for key, text in pod(tmp_path, "").files.items():
        if key.endswith(".py"):
            tree = ast.parse(text, key, feature_version=OLDEST)
            for node in ast.walk(tree):
                imported = node.module if isinstance(node, ast.ImportFrom) else None
                if imported and imported.startswith("mlp"):
                    travels = imported.startswith(
                        ("mlp_hub.executors.kubernetes.rank", "mlp_hub.sandbox.shim", "mlp_hub.durable")
                    )
                    assert travels or key == "mlp_hub.sandbox.shim.diagnosis.outcome.py", (key, imported)


def test_a_rank_writes_its_log_its_report_and_its_own_output(tmp_path: Path) -> None:
    here = pod(
        tmp_path, "import os, sys\nprint(os.environ['MLP_JOB'], os.getcwd())\nprint('oh', file=sys.stderr)\n"
    )
    assert here.run() == (0, f"digits {tmp_path}\n", "oh\n")
    assert sorted(here.lines()) == [("stderr", "oh"), ("stdout", f"digits {tmp_path}")]
    report = here.report()
    assert (report["state"], report["cause"], report["exit_code"], report["rank"]) == ("finished", "ok", 0, 0)
    assert (here.log / "a-1.0.json").stat().st_mode & 0o777 == 0o644  # the hub may be another user
    assert not list(here.log.glob("*.reserve"))


def test_a_rank_starts_in_the_directory_that_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    here = pod(tmp_path, "import os; print(os.getcwd())", workdir=str(tmp_path / "src"))
    assert here.run() == (0, f"{tmp_path}/src\n", "")


def test_a_directory_that_cannot_be_entered_is_the_reason_and_the_program_does_not_start_elsewhere(
    tmp_path: Path,
) -> None:
    gone = str(tmp_path / "gone")
    here = pod(tmp_path, "print('began')", workdir=gone)
    assert here.run()[0] == 127
    said = f"the program should start in {gone}, which cannot be entered: No such file or directory"
    assert (here.report()["cause"], here.report()["message"]) == ("start-failed", said)
    assert here.lines() == [("stderr", f"[mlp] {said}")]


def test_a_later_attempt_continues_in_the_same_log(tmp_path: Path) -> None:
    here = pod(tmp_path, "print('hello')")
    here.run()
    here.plan["attempt"] = "a-2"
    here.run()
    assert here.lines() == [("stdout", "hello")] * 2


def test_an_exception_is_the_reason(tmp_path: Path) -> None:
    here = pod(tmp_path, "def f():\n    raise ValueError('no digit')\nf()\n")
    assert here.run()[0] == 1
    report = here.report()
    assert (report["state"], report["cause"]) == ("failed", "program-error")
    assert report["message"] == "rank 0: ValueError: no digit (exit status 1)"
    assert report["tail"].startswith("Traceback")


def test_a_search_for_another_machine_hints_at_the_missing_network(tmp_path: Path) -> None:
    here = pod(tmp_path, "import sys; sys.exit('Could not resolve host: example.org')")
    here.run()
    assert here.report()["hint"] == "no-network"


def test_other_exit_statuses_may_be_success(tmp_path: Path) -> None:
    here = pod(tmp_path, "import sys; sys.exit(7)", success=[0, 7])
    assert here.run()[0] == 0
    assert (here.report()["state"], here.report()["exit_code"]) == ("finished", 7)


def test_a_signal_that_nobody_sent_on_purpose_is_told(tmp_path: Path) -> None:
    here = pod(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert here.run()[0] == 128 + signal.SIGSEGV
    assert here.report()["message"] == "rank 0 was killed by signal 11 (SIGSEGV)"


def test_sigterm_is_passed_on_and_what_follows_is_kept(tmp_path: Path) -> None:
    here = pod(
        tmp_path,
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit('goodbye'))\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(1)\n",
    )
    process = here.begin()
    wait_for(lambda: ("stdout", "ready") in here.lines())
    process.terminate()
    process.communicate(timeout=120)
    assert here.lines()[-1] == ("stderr", "goodbye")
    assert (here.report()["state"], here.report()["cause"], here.report()["asked"]) == (
        "stopped",
        "stopped",
        True,
    )


SAVES = """
import signal, sys, time
def save(*_):
    time.sleep(0.5)
    print("saved", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
while True:
    time.sleep(600)
"""


@pytest.mark.parametrize(
    "script",
    [
        "{python} {saves}; echo",
        "{python} {saves} | cat; echo",
        "setsid {python} {saves} & wait",
        "{python} {saves} > {out} 2>&1 & tail -f --pid=$! {out}; wait",
    ],
)
def test_all_processes_of_a_rank_are_asked_and_have_the_grace(tmp_path: Path, script: str) -> None:
    (tmp_path / "saves.py").write_text(SAVES)
    (tmp_path / "out.txt").touch()
    words = {"python": sys.executable, "saves": tmp_path / "saves.py", "out": tmp_path / "out.txt"}
    here = pod(tmp_path, "", program=["/bin/sh", "-c", script.format(**words)])
    process = here.begin()
    wait_for(lambda: ("stdout", "ready") in here.lines())
    process.terminate()
    process.communicate(timeout=120)
    assert "saved" in [text for _, text in here.lines()] + (tmp_path / "out.txt").read_text().split()
    report = here.report()
    assert (report["state"], report["killed"], report["asked_at"] is None) == ("stopped", False, False)


def test_processes_left_after_the_grace_are_killed_and_that_is_reported(tmp_path: Path) -> None:
    here = pod(
        tmp_path, "", program=["/bin/sh", "-c", "trap '' TERM; echo ready; sleep 600; echo"], grace_s=0.2
    )
    process = here.begin()
    wait_for(lambda: ("stdout", "ready") in here.lines())
    process.terminate()
    process.communicate(timeout=120)
    assert here.report()["killed"] is True


def test_a_time_limit_ends_it_with_that_reason(tmp_path: Path) -> None:
    here = pod(tmp_path, "import time; time.sleep(1000)", time_limit=0.2)
    assert here.run()[0] != 0
    assert (here.report()["state"], here.report()["cause"]) == ("failed", "time-limit")


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    here = pod(tmp_path, "", program=["/no/such/program"])
    assert here.run()[0] == 127
    assert (here.report()["cause"], here.report()["message"]) == (
        "start-failed",
        "/no/such/program: No such file or directory",
    )
    assert here.lines() == [("stderr", "[mlp] /no/such/program: No such file or directory")]


def test_background_processes_of_a_program_do_not_keep_its_rank_alive(tmp_path: Path) -> None:
    here = pod(tmp_path, "import subprocess; subprocess.Popen(['sleep', '1000']); print('done')")
    assert here.run()[:2] == (0, "done\n")


def test_lines_that_a_rank_lost_before_it_was_killed_are_counted(tmp_path: Path) -> None:
    here = pod(
        tmp_path, "import time\nfor n in range(60): print(n, 'x' * 300, flush=True)\ntime.sleep(600)\n"
    )
    rank = here.begin(most_bytes=8192)  # where there is no room, as on a full disk
    assert records.lost_lines(str(tmp_path), "a-1", [0]) == 0

    def accounted() -> int:
        kept = [
            text for _, text in here.lines() if not text.startswith("[mlp] ")
        ]  # a remark on the loss may fit in
        return records.lost_lines(str(tmp_path), "a-1", [0]) + len(kept)

    wait_for(lambda: accounted() == 60)
    rank.kill()
    rank.communicate()
    assert here.report()["state"] == "running"  # and it says no more
    assert 0 < records.lost_lines(str(tmp_path), "a-1", [0, 1]) < 60


def test_a_rank_that_lost_nothing_leaves_no_number(tmp_path: Path) -> None:
    here = pod(tmp_path, "print('well')")
    assert here.run()[0] == 0
    assert not list(here.log.glob("*.lost"))
    here.plan["program"] = ["/nowhere"]
    assert here.run()[0] == 127
    assert not list(here.log.glob("*.lost"))


@pytest.mark.parametrize("text", [b"-7", b"many", b"9" * 4096, b"", b"\xff\0", b"99999999999"])
def test_a_number_of_lost_lines_that_its_program_wrote_is_not_believed(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "a-1.0.lost").write_bytes(text)
    (tmp_path / "secret").write_text("7")
    (tmp_path / "log" / "a-1.1.lost").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "log" / "a-1.2.lost")
    (tmp_path / "log" / "a-1.3.lost").mkdir()
    (tmp_path / "log" / "a-1.4.lost").write_bytes(b"%020d" % 3)
    assert records.lost_lines(str(tmp_path), "a-1", range(6)) == 3


def test_the_leaders_pod_ends_when_the_others_have(tmp_path: Path) -> None:
    here = pod(tmp_path, "print('done')", 2, leader=0, linger_s=600.0)
    process = here.begin(0)
    wait_for(lambda: (here.log / "a-1.0.json").exists() and here.report()["state"] == "finished")
    assert process.poll() is None
    here.run(1)
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert here.report(1)["state"] == "finished"


def test_a_log_that_cannot_be_written_is_said_where_it_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("a file")
    code, _, err = pod(tmp_path, "print('x')").run()
    assert code == 127
    assert f"[mlp] {tmp_path}/log: File exists" in err


@pytest.mark.parametrize("module", ["json", "no_such_module"])
def test_a_module_that_the_interpreter_lacks_runs_nothing(module: str, tmp_path: Path) -> None:
    package = tmp_path / "lib" / "python3.11" / "site-packages" / "json"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    python = str(tmp_path / "bin" / "python3")
    found = places.command([places.PYTHON, places.BY_MODULE + module, "x{}"], python)
    assert found == [
        python,
        *(["/run/mlp/mlp_hub/sandbox/shim/programs/by_json.py"] if module == "json" else []),
        "x{}",
    ]


@pytest.mark.parametrize(("said", "words", "line"), [
    ("HYDRA build details:", ["-launcher", "ssh", "-f", "hosts", "-n", "2"], "t-launcher.t:1\n"),
    ("mpirun (Open MPI) 4.1.4", ["--hostfile", "hosts", "-n", "2"], "t-launcher.t slots=1\n"),
])  # fmt: skip
def test_mpirun_is_called_as_whichever_it_is(
    said: str, words: list[str], line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mpi, "_TMP", str(tmp_path))
    mpirun = tmp_path / "mpirun"
    mpirun.write_text(f"#!/bin/sh\necho '{said}'\n")
    mpirun.chmod(0o755)
    plan = {
        "hosts": ["t-launcher.t", "t-worker-0.t"],
        "roles": ["worker", "worker"],
        "env": {"PATH": "/usr/bin"},
        "envs": [],
        "grace_s": 5.0,
    }
    _, command = mpi._command(str(mpirun), OwnPlan(plan, 0))
    assert command == [str(mpirun), *(str(tmp_path / "hosts") if word == "hosts" else word for word in words)]
    assert (tmp_path / "hosts").read_text().startswith(line)
    assert "IdentityFile /run/mlp-ssh/id_rsa" in (tmp_path / "ssh_config").read_text()


MPIRUN = """#!/bin/sh
[ "$1" = --version ] && {{ echo 'mpirun (Open MPI) 4.1.4'; exit; }}
TMPDIR={root} MLP_RANK_FILES={root}/files OMPI_COMM_WORLD_RANK=0 {python} -IS {root}/files/start.py rank
exec sleep 600
"""
"""Open MPI's, as far as it matters here: it remains when its rank has ended."""


def gang(root: Path, code: str) -> tuple[Pod, subprocess.Popen[bytes]]:
    """Begin the pod of an MPI job in which mpirun runs."""
    here, programs = pod(root, code, mode="mpi", network="none"), root / "bin"
    programs.mkdir()
    mpirun = MPIRUN.format(root=root, python=sys.executable)
    for name, text in (("mpirun", mpirun), ("sshd", "#!/bin/sh\nexec sleep 600\n"), ("ssh", "#!/bin/sh\n")):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    env = {"PATH": f"{programs}:{os.environ['PATH']}", "TMPDIR": str(root)}
    return here, here.begin(**env)


def test_an_mpi_job_that_is_asked_to_end_ends_with_its_ranks_and_not_with_mpirun(tmp_path: Path) -> None:
    # Open MPI waits twice for 5 s when nothing is left to tear down
    here, process = gang(tmp_path, "import time\nprint('ready', flush=True)\ntime.sleep(600)\n")
    wait_for(lambda: ("stdout", "ready") in here.lines())
    process.terminate()
    process.communicate(timeout=120)
    assert (process.returncode, here.report()["state"]) == (143, "stopped")


def test_an_mpi_job_that_ends_well_when_it_is_asked_has_ended_well(tmp_path: Path) -> None:
    here, process = gang(tmp_path, SAVES)
    wait_for(lambda: ("stdout", "ready") in here.lines())
    process.terminate()
    process.communicate(timeout=120)
    assert (process.returncode, here.report()["state"]) == (0, "finished")


def test_an_mpi_job_of_which_a_rank_failed_ends_with_its_ranks_and_not_with_mpirun(tmp_path: Path) -> None:
    here, process = gang(tmp_path, "raise ValueError('no digit')")
    process.communicate(timeout=120)
    assert (process.returncode, here.report()["state"]) == (1, "failed")


def test_a_rank_that_mpirun_ends_after_a_failure_does_not_wait_for_the_others(tmp_path: Path) -> None:
    # mpirun asks the others one after the other, each 5 s after the one before
    here = pod(tmp_path, "raise ValueError('no digit')", workers=3)
    assert here.run(1)[0] == 1
    (tmp_path / "main.py").write_text("import time\nprint('ready', flush=True)\ntime.sleep(600)\n")
    here.plan["mode"] = "mpi"
    start = [sys.executable, "-IS", str(tmp_path / "files" / "start.py"), "rank"]
    (tmp_path / "files" / "plan.json").write_text(json.dumps(here.plan))
    env = {
        "PATH": os.environ["PATH"], "TMPDIR": str(tmp_path), "OMPI_COMM_WORLD_RANK": "0",
        "MLP_FIRST_RANK": "0", "MLP_INDEX": "0", "MLP_RANK_FILES": str(tmp_path / "files"),
    }  # fmt: skip
    with subprocess.Popen(start, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        wait_for(lambda: ("stdout", "ready") in here.lines())
        process.terminate()
        wait_for(lambda: here.report()["state"] == "stopped")
        assert process.wait(10) != 0  # of the 20 s that it has


def test_a_gang_is_over_once_a_rank_failed_and_when_asked_once_all_have_ended(tmp_path: Path) -> None:
    here = pod(tmp_path, "", workers=2)
    own = OwnPlan(here.plan, 0)
    assert here.run(0)[0] == 0
    assert (mpi._over(own, asked=False), mpi._over(own, asked=True)) == (None, None)
    assert here.run(1)[0] == 0
    assert (mpi._over(own, asked=False), mpi._over(own, asked=True)) == (None, 0)
    (tmp_path / "main.py").write_text("raise ValueError")
    assert here.run(1)[0] == 1
    assert (mpi._over(own, asked=False), mpi._over(own, asked=True)) == (1, 143)


def test_a_rank_waits_for_those_names_only_that_it_is_told() -> None:
    plan = {"hosts": ["t-0.t", "t-1.t", "t-2.t"], "roles": ["worker"] * 3}
    own = OwnPlan(plan, 1)
    assert peers.named(own, ["run", "--master=t-0.t:20000"], {"MLP_JOB": "t"}) == ["t-0.t"]
    assert peers.named(own, ["run"], {}) == []
    peers.resolve(["no.such.name.invalid"], lambda: True)  # it was asked to end meanwhile

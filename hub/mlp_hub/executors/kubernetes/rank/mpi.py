"""MPI over pods: a secure shell in each, and mpirun in the first, which starts a rank in all of them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from typing import Any

from mlp_hub.executors.kubernetes.rank import peers, places, told
from mlp_hub.executors.kubernetes.rank.pump import Children
from mlp_hub.executors.kubernetes.rank.supervise import SupervisedRank
from mlp_hub.sandbox.shim.diagnosis.messages import Said, msg
from mlp_hub.sandbox.shim.logs import writer

PORT = 2222
"""Given: port of the secure shell; a user without rights cannot listen at 22."""
KEYS = "/run/mlp-ssh"
_TMP = os.environ.get("TMPDIR", "/tmp")  # noqa: S108 - the pod's own
_PID = f"{_TMP}/mlp-rank.pid"
_NUMBERS = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")
_AGAIN_S, _PATIENT_S, _LOOK_S = 0.05, 0.5, 3.0
"""Tuning: seconds until another pod is tried again, at first and at most: how soon ranks begin, for questions to the cluster's
name servers; and until it is looked whether one has failed: reads of the volume."""
_OVER_S = 1.0
"""Tuning: seconds between two looks whether this pod's rank has ended: how soon a gang ends after its ranks, for a read of /proc."""
TEARDOWN_S = 5.0
"""Given: seconds that other ranks get once one has failed, as on one machine.

Open MPI waits this time several times.
"""
_SSHD = f"""\
Port {PORT}
HostKey {KEYS}/id_rsa
AuthorizedKeysFile {KEYS}/authorized_keys
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
LogLevel ERROR
MaxStartups 1000
"""
_SSH = f"""\
Host *
  Port {PORT}
  IdentityFile {KEYS}/id_rsa
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  ConnectionAttempts 10
  LogLevel ERROR
"""


def rank(plan: dict[str, Any]) -> int:
    """Run the rank whose number mpirun put into the environment; its output does not go through mpirun."""
    number = next((int(os.environ[name]) for name in _NUMBERS if name in os.environ), None)
    if number is None:
        raise SystemExit("mpirun tells no rank: none of " + ", ".join(_NUMBERS) + " is set")
    own = told.OwnPlan(plan, number)
    with open(_PID, "w") as file:
        file.write(str(os.getpid()))
    one = SupervisedRank(own, (_pods_output(1), _pods_output(2)))
    if not one.open():
        return 127
    env = {**own.env(), **{name: text for name, text in os.environ.items() if _of_mpi(name)}}
    status = one.run(own.argv(), env)
    if one.asked:
        # mpirun would end the others at once, who were asked to end as well and may still write; after a failure it does anyway
        peers.linger(own, float(plan["grace_s"]), lambda: peers.failed(own) is not None)
    return status


def _of_mpi(name: str) -> bool:
    return name.startswith(
        ("OMPI_", "PMIX_", "PMI_", "PRTE_", "ORTE_", "OPAL_", "HYDRA_", "HYDI_", "MPI", "HWLOC_")
    )


def _pods_output(fd: int) -> int:
    """Open where the pod's first process writes to, which the cluster shows as the pod's log."""
    with contextlib.suppress(OSError):
        return os.open(f"/proc/1/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)


def worker(own: told.OwnPlan) -> int:
    """Be reached by mpirun until told to end, which comes once all is over; the rank here may then say goodbye."""
    children = Children(_ask_rank)
    sshd = _program("sshd")
    if sshd is None or _program("ssh") is None:
        return _lacks(own, "sshd")
    peers.resolve([own.plan["hosts"][0]], children.asked)  # MPICH calls back by name
    process = children.start([sshd, "-D", "-e", "-f", _written("sshd_config", _SSHD)], echo=True)
    while not children.asked() and process.returncode is None:
        children.wait(None)
    if not children.asked():
        from mlp_hub.executors.kubernetes.rank.report import Report  # noqa: PLC0415 - seldom

        said = msg("sshd ended: {error}", error=children.tail.strip().split("\n")[-1])
        return Report(own).never_began(said)
    until = time.monotonic() + float(own.plan["grace_s"]) + 1
    while _rank_here() and time.monotonic() < until:
        children.wait(_AGAIN_S)
    return 0


def launcher(own: told.OwnPlan) -> int:
    """Start all ranks once all pods are reached; end as mpirun does, or as the ranks did if mpirun was killed."""
    children = Children(_ask_rank)
    mpirun = shutil.which("mpirun") or shutil.which("mpiexec")
    if mpirun is None:
        return _lacks(own, "mpirun")
    sshd = _program("sshd")
    if sshd is None or _program("ssh") is None:
        return _lacks(own, "sshd")
    children.start([sshd, "-D", "-e", "-f", _written("sshd_config", _SSHD)], echo=True)
    env, words = _command(mpirun, own)  # takes a moment, in which the others start
    lost = _reach(own, children)
    if children.asked():
        return 143
    if lost is not None:
        return 1
    children.tail = ""
    process = children.start(
        [*words, own.python, "-IS", f"{places.HERE}/start.py", "rank"], env=env, echo=True
    )
    status = _follow(own, children, process)
    if status is None:  # else the shells of mpirun hold its output open
        children.drain(process)
        status = process.returncode if process.returncode >= 0 else 128 - process.returncode
    _tell(own, children.tail, process.returncode)
    return status


def _follow(own: told.OwnPlan, children: Children, process: subprocess.Popen[bytes]) -> int | None:
    """Wait for the end of mpirun. Return the gang's exit status if mpirun had nothing left to do and was killed for that.

    Open MPI waits for its teardown time several times, also for ranks that have ended: 10 s in which the team's quota is held.
    """
    kill_at, status = None, None
    while process.returncode is None:
        if children.asked() and kill_at is None:
            kill_at = time.monotonic() + float(own.plan["grace_s"]) + 2
        children.wait(_OVER_S)
        if status is None and os.path.exists(_PID) and _rank_here() is None:
            status = _over(own, asked=children.asked())
        if status is not None or (kill_at is not None and time.monotonic() >= kill_at):
            process.kill()
    return status


def _over(own: told.OwnPlan, *, asked: bool) -> int | None:
    """Return how a gang ended whose rank here has ended; None if mpirun has more to do.

    Once a rank has failed the cluster ends the other pods, which ask their ranks.
    """
    states = peers.states(own)
    if not asked:
        return 1 if "failed" in states else None
    if not states <= peers.DONE:
        return None
    return 0 if states == {"finished"} else 143


def _reach(own: told.OwnPlan, children: Children) -> int | None:
    """Return once the others answer, or the rank that never will."""
    look_at, again = time.monotonic() + _LOOK_S, _AGAIN_S
    for host in own.plan["hosts"][1:]:
        while not children.asked() and not peers.answers(host, PORT):
            children.wait(again)
            again = min(_PATIENT_S, again * 1.2)
            if time.monotonic() >= look_at:
                look_at = time.monotonic() + _LOOK_S
                if (lost := peers.failed(own)) is not None:
                    return lost
    return None


def _command(mpirun: str, own: told.OwnPlan) -> tuple[dict[str, str], list[str]]:
    """Return the environment and the command of whichever MPI the image has."""
    hosts, ranks = own.plan["hosts"], str(own.ranks)
    ssh = f"ssh -q -F {_written('ssh_config', _SSH)}"
    env = own.env()
    if _is_hydra(mpirun):
        env["HYDRA_LAUNCHER_EXTRA_ARGS"] = f"-F {_TMP}/ssh_config"
        machines = _written("hosts", "".join(f"{host}:1\n" for host in hosts))
        return env, [mpirun, "-launcher", "ssh", "-f", machines, "-n", ranks]
    grace = str(int(min(float(own.plan["grace_s"]), TEARDOWN_S)))
    for prefix in ("OMPI_MCA_", "PRTE_MCA_"):
        env[f"{prefix}odls_base_sigkill_timeout"] = grace
        env[f"{prefix}orte_keep_fqdn_hostnames"] = "true"
    # cores are shared: a rank that only waits leaves them to the one that it waits for
    env.setdefault("OMPI_MCA_mpi_yield_when_idle", "1")
    env["OMPI_MCA_plm_rsh_agent"] = env["PRTE_MCA_plm_ssh_agent"] = ssh
    env["OMPI_MCA_plm_rsh_args"] = env["PRTE_MCA_plm_ssh_args"] = ""
    machines = _written("hosts", "".join(f"{host} slots=1\n" for host in hosts))
    return env, [mpirun, "--hostfile", machines, "-n", ranks]


def _is_hydra(mpirun: str) -> bool:
    """Whether it is MPICH's, by the name that links lead to; only where that says nothing it is asked, which takes a moment."""
    name = os.path.basename(os.path.realpath(mpirun))
    if any(word in name for word in ("orte", "prte", "openmpi")):
        return False
    if any(word in name for word in ("hydra", "mpich")):
        return True
    said = subprocess.run([mpirun, "--version"], capture_output=True, text=True, check=False).stdout
    return "HYDRA" in said.upper()


def _tell(own: told.OwnPlan, said: str, status: int) -> None:
    """Put what mpirun itself said behind rank 0's own lines; where no rank ever ran, that is the reason."""
    if (peers.reported(own, 0) or {}).get("started_at") is None and status:
        from mlp_hub.executors.kubernetes.rank.report import Report  # noqa: PLC0415 - seldom

        lines = [line for line in said.split("\n") if line.strip(" -")]
        Report(own).never_began(
            msg("mpirun started no rank: {error}", error=lines[-1] if lines else str(status))
        )
    if not said.strip():
        return
    with contextlib.suppress(OSError):
        folder = own.log()
        log = writer.RankLog(folder, 0)
        stream = writer.Stream(log, "stderr")
        stream.feed(said.rstrip("\n").encode() + b"\n")
        log.close()
        os.close(folder)


def _lacks(own: told.OwnPlan, program: str) -> int:
    from mlp_hub.executors.kubernetes.rank.report import Report  # noqa: PLC0415 - seldom

    said: Said = (
        msg("the image has no sshd and ssh, by which MPI starts ranks in pods: install openssh-server in it")
        if program == "sshd"
        else msg("the image has no mpirun, which runtime mpi needs: install Open MPI or MPICH in it")
    )
    return Report(own).never_began(said)


def _program(name: str) -> str | None:
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/local/sbin")


def _written(name: str, text: str) -> str:
    path = f"{_TMP}/{name}"
    with open(path, "w") as file:
        file.write(text)
    return path


def _rank_here() -> int | None:
    """Return the process of the rank that mpirun has started in this pod, if it lives."""
    with contextlib.suppress(OSError, ValueError):
        with open(_PID) as file:
            pid = int(file.read())
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return pid if b"start.py" in file.read() else None
    return None


def _ask_rank() -> None:
    pid = _rank_here()
    if pid is not None:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGTERM)

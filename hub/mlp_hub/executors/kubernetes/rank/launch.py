"""A launcher of the runtime's own over pods: it runs in the first pod, and each rank that it starts there runs in its own.

For each rank the launcher starts a stub, which hands the rank's variables to the agent in that rank's pod, and ends as the
rank does.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import signal
import socket
import sys
import threading
import time
from typing import Any

from mlp_hub.executors.kubernetes.rank import peers, places, told
from mlp_hub.executors.kubernetes.rank.pump import Children
from mlp_hub.executors.kubernetes.rank.report import Report
from mlp_hub.executors.kubernetes.rank.supervise import SupervisedRank
from mlp_hub.sandbox.shim.diagnosis.messages import msg

PORT = 19_999
"""Given: port of agents, below those that ranks are given."""
_AGAIN_S = 0.2
"""Tuning: seconds until it is looked again: how soon a pod that begins is found."""
_MOST = 1 << 20
"""Safety: bytes of a stub's message: a caller of the port cannot fill the memory."""
_SHELLS = {"HOSTNAME", "PWD", "OLDPWD", "SHLVL", "_"}


def launcher(own: told.OwnPlan) -> int:
    """Run the launcher, beside the agent of this pod's own rank."""
    children = Children(lambda: None)
    agents = children.start([own.python, "-IS", f"{places.HERE}/start.py", "agent"])
    argv = [word for text in own.plan["launcher"] for word in places.command([text], own.python)]
    try:
        process = children.start(argv, env=own.env(), echo=True)
    except OSError as error:
        return Report(own).never_began(msg("{program}: {error}", program=argv[0], error=str(error.strerror)))
    told_to_end = False
    while process.returncode is None:
        if children.asked() and not told_to_end:
            told_to_end = True
            for one in (agents, process):
                with contextlib.suppress(OSError):
                    one.send_signal(signal.SIGTERM)
        children.wait(1.0)
    children.drain(process)
    status = process.returncode if process.returncode >= 0 else 128 - process.returncode
    if status and (peers.reported(own, 0) or {}).get("started_at") is None:
        lines = [line for line in children.tail.split("\n") if line.strip()]
        said = msg("the launcher ended with {code} before any rank started", code=status)
        if lines:
            said = msg(
                "the launcher ended with {code} before any rank started: {error}",
                code=status,
                error=lines[-1],
            )
        Report(own).never_began(said)
    with contextlib.suppress(OSError):
        agents.send_signal(signal.SIGTERM)  # without its stub its rank ends, if it has not, or never begins
    until = time.monotonic() + float(own.plan["grace_s"]) + 1
    while agents.returncode is None and time.monotonic() < until:
        children.wait(_AGAIN_S)
    return status


def agent(own: told.OwnPlan) -> int:
    """Wait for the launcher to start this pod's rank, and run that."""
    rank = SupervisedRank(own)
    if not rank.open():
        return 127
    server = socket.create_server(("", PORT))  # the pod's own address, whatever that is
    server.settimeout(_AGAIN_S)
    while not rank.asked:
        try:
            link, _ = server.accept()
        except OSError:
            continue
        found = _asked_for(own, link)
        if found is None:
            link.close()
            continue
        server.close()
        threading.Thread(target=_until_closed, args=(link,), daemon=True).start()
        argv, env = own.argv(), {**own.env(), **found}
        peers.resolve(peers.named(own, argv, env), lambda: rank.asked)
        status = rank.run(argv, env)
        with contextlib.suppress(OSError):
            link.sendall(json.dumps({"status": status}).encode() + b"\n")
        return status
    return rank.run([], {})


def _asked_for(own: told.OwnPlan, link: socket.socket) -> dict[str, str] | None:
    """Read what a stub asks for; None for anybody else."""
    link.settimeout(5.0)
    try:
        with link.makefile("rb") as file:
            asked: dict[str, Any] = json.loads(file.readline(_MOST))
        good = hmac.compare_digest(str(asked["key"]), _key(own.plan)) and asked["rank"] == own.rank
        link.settimeout(None)
        return dict(asked["env"]) if good else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _until_closed(link: socket.socket) -> None:
    """Ask the rank to end when its stub does."""
    with contextlib.suppress(OSError):
        link.recv(1)
    os.kill(os.getpid(), signal.SIGTERM)


def stub(plan: dict[str, Any]) -> int:
    """Have a rank started in its pod; end as it does."""
    number = os.environ.get(plan["rank_env"], "")
    if not number.isdigit() or int(number) >= len(plan["roles"]):
        sys.exit(f"the launcher tells no rank: {plan['rank_env']} is {number!r}")
    rank = int(number)
    first = told.OwnPlan(plan, 0).env()
    env = {k: v for k, v in os.environ.items() if first.get(k) != v and k not in _SHELLS}
    env.pop("MLP_RANK", None)
    link = _reached(plan["hosts"][rank])
    signal.signal(signal.SIGTERM, lambda _number, _frame: link.shutdown(socket.SHUT_WR))
    link.sendall(json.dumps({"key": _key(plan), "rank": rank, "env": env}).encode() + b"\n")
    try:
        with link.makefile("rb") as file:
            return int(json.loads(file.readline(_MOST))["status"])
    except (OSError, ValueError):
        print(f"[mlp] rank {rank} was lost", file=sys.stderr)  # noqa: T201 - to the launcher
        return 1


def _reached(host: str) -> socket.socket:
    while True:
        try:
            return socket.create_connection((host, PORT))
        except OSError:
            time.sleep(_AGAIN_S)


def _key(plan: dict[str, Any]) -> str:
    """Return what only this gang's pods know."""
    return str(plan["env"].get("MLP_JOB_TOKEN") or plan["attempt"])

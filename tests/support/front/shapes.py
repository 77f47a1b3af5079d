"""Tenants, jobs, their ranks and their events, in the wire's shapes."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]
GIB = 1024**3


def when(seconds: float = 0) -> str:
    """RFC 3339 time that many seconds from now."""
    return datetime.fromtimestamp(time.time() + seconds, UTC).isoformat().replace("+00:00", "Z")


def forecast(first: float, last: float, **change: Any) -> Json:
    """Return a forecast of a start between these seconds from now."""
    start = {"p10": when(first), "p50": when((first + last) / 2), "p90": when(last)}
    because = "estimated from earlier runs of 3 other jobs"
    return {"start": start, "end": None, "runs": 0, "because": because} | change


def tenant(name: str, **change: Any) -> Json:
    return {
        "name": name,
        "cpu": 4.0,
        "gpu": 0.0,
        "ram": 8192,
        "rom": 100 * GIB,
        "gpu_kinds": {},
        "cpu_inuse": 0.0,
        "gpu_inuse": 0.0,
        "ram_inuse": 0,
        "rom_inuse": 0,
        "weight": 1.0,
        "cohort": None,
        "parent": None,
        "borrowing_limit": None,
        "lending_limit": None,
        "reserved": None,
        "borrowed": {},
        "lent": {},
        "lendable": {},
        "over": {},
        "free": {},
        "lowered": None,
        "queue_order": "priority",
        "isolation": "shared",
        "data_root": "",
        "move": None,
        "network": None,
        "job_network": "none",
        "leavers": "finish",
        "datasets": "own",
        "joining": "closed",
        "description": "",
        "members": 0,
        "running": 0,
        "waiting": 0,
        "notes": [],
    } | change


def used_over(hours: int) -> list[Json]:
    """What a team of 4 cores held in so many hours until now: more by day, and nothing while the hub was down."""
    last = int(time.time() // 3600)
    return [
        {
            "time": datetime.fromtimestamp(hour * 3600, UTC).isoformat().replace("+00:00", "Z"),
            "cpu": 3.5 if 8 <= hour % 24 < 20 else 0.5,
            "gpu": 0.0,
            "ram": 6144 if 8 <= hour % 24 < 20 else 512,
            "rom": 20 * GIB,
            "running": 3,
            "waiting": 1,
        }
        for hour in range(last - hours + 1, last + 1)
        if not last - 100 < hour < last - 90
    ]


def rank(number: int, **change: Any) -> Json:
    return {
        "rank": number,
        "role": "worker",
        "node": "node-1",
        "state": "running",
        "exit_code": None,
        "signal": None,
        "cpu": 0.97,
        "ram": 212 + 9 * number,
    } | change


def attempt(number: int, begin: float, *stages: tuple[str, float], ended: str | None = None) -> Json:
    """An attempt that began at so many seconds from now, with stages and how long each took."""
    found: list[Json] = []
    for stage, seconds in stages:
        begin += seconds
        found.append({"stage": stage, "time": when(begin), "seconds": seconds if found else None})
    return {
        "attempt": number,
        "stages": found,
        "ended": ended,
        "ended_at": when(begin + 5) if ended else None,
    }


def job(name: str, **change: Any) -> Json:
    return {
        "name": name,
        "run": 1,
        "user": "ann",
        "tenant": "red",
        "runtime": "mpi",
        "entry": None,
        "code": "print(1)",
        "workdir": None,
        "args": [],
        "env": {},
        "workers": 2,
        "ps": 0,
        "cpu": 1.0,
        "gpu": 0.0,
        "gpu_kind": None,
        "ram": 512,
        "priority": "normal",
        "time_limit": None,
        "retries": 0,
        "checkpoint_every": None,
        "topology": None,
        "tensorboard": "on",
        "params": {},
        "sweep": None,
        "trial": None,
        "data": [],
        "uid": f"uid-{name}",
        "state": "running",
        "phase": "running",
        "reason": None,
        "message": "",
        "progress": 42,
        "restarts": 0,
        "position": None,
        "expected_start": None,
        "forecast": None,
        "ranks": [rank(0), rank(1)],
        "failure": None,
        "submitted_at": when(-130),
        "queued_at": when(-130),
        "admitted_at": when(-121),
        "started_at": when(-120),
        "finished_at": None,
        "waiting_since": None,
        "waited_s": 9.0,
        "ran_s": 0.0,
        "progress_from": 0,
        "progress_since": when(-120),
        "put_first": False,
        "memory": None,
        "idle": None,
        "note": "",
        "version": 1,
    } | change


def entry(name: str, **change: Any) -> Json:
    return {
        "kind": "job",
        "user": "bob",
        "name": name,
        "run": 1,
        "tenant": "red",
        "phase": "queued",
        "priority": "normal",
        "position": None,
        "reason": None,
        "message": "",
        "cpu": 2.0,
        "gpu": 0.0,
        "ram": 1024,
        "submitted_at": when(-300),
        "waiting_since": when(-300),
        "waited_s": 0.0,
        "ran_s": 0.0,
        "started_at": None,
        "expected_start": None,
        "forecast": None,
        "expected_because": "",
        "put_first": False,
        "facts": [],
    } | change


def holding(holder: str, user: str, **change: Any) -> Json:
    return {
        "holder": holder,
        "user": user,
        "applier": "jm",
        "cpu": 2.0,
        "gpu": 0.0,
        "ram": 1024,
        "rom": 0,
        "since": when(-500),
        "job": None if "applier" in change else holder,
        "app": None,
        "replica": None,
    } | change


WAITS = (
    "red may use 4 cpu; 3.2 in use by bob's notebook (0.2) and job digits-3 of bob (3); this job asks for 2"
)


SCHEDULING = {
    "policy": "fair",
    "meaning": "share of the machines, current and recent use",
    "placement": "fgd",
    "backfill": True,
    "preemption": True,
    "half_life_s": 3600.0,
    "min_run_s": 30.0,
    "restart_cost_s": 0.0,
    "aging_s": 600.0,
}


def work(wait: float, preemptions: int, **change: Any) -> Json:
    """Figures of a simulated run."""
    return {
        "jobs": 12,
        "running": 4,
        "waits_of": 8,
        "waited_again_s": 0.0,
        "finished": 12,
        "refused": 0,
        "never_started": 0,
        "preemptions": preemptions,
        "avg_wait_s": wait,
        "p50_wait_s": wait / 2,
        "p99_wait_s": wait * 3,
        "avg_jct_s": wait + 600,
        "ftf_avg": 1.0,
        "ftf_worst": 2.0,
    } | change


def waited(reason: str, jobs: int, message: str, never: int = 0) -> Json:
    """What some jobs of a run waited for."""
    told = {"reason": reason, "jobs": jobs, "never": never, "message": message}
    return told | {"job": "digits-5", "user": "ann"}


def unmoved(answer: Json, before: list[Json], after: list[Json]) -> None:
    """Let a what-if be one in which no start moves, whatever the jobs wait for."""
    answer["after"] = answer["before"] | {"waits": after}
    answer["before"] = answer["before"] | {"waits": before}
    answer["moves"] |= {"earlier": 0, "later": 0, "only_before": 0, "only_after": 0, "most": []}


def simulation(before: Json, after: Json) -> Json:
    """An answer to a what-if in which red gains."""
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="96" height="20" viewBox="0 0 96 20"><rect width="60" height="20"/></svg>'
    whole = {
        "makespan_s": 20_000.0,
        "utilization": {"cpu": 0.61, "gpu": 0.0},
        "lost_work_s": 0.0,
        "waits": [waited("WaitingForQuota", 2, WAITS)],
        "gantt": svg,
    }
    share = {"cpu_h": 12.0, "gpu_h": 0.0, "share": 0.75, "fair_share": 0.5}
    most = [
        {
            "job": "digits-5",
            "user": "ann",
            "tenant": "red",
            "before_s": 7200.0,
            "after_s": 0.0,
            "why": "red may use 4 cpu; 4 in use by job long of ann (4); this job asks for 2",
        },
        {
            "job": "lstm",
            "user": "carol",
            "tenant": "blue",
            "before_s": 60.0,
            "after_s": None,
            "why": "blue may use 1 cpu in all and this job asks for 2",
        },
    ]
    return {
        "begin": when(),
        "before": before
        | whole
        | {"per_tenant": {"red": before | share, "blue": before | share | {"jobs": 0}}},
        "after": after | whole | {"per_tenant": {"red": after | share, "blue": after | share | {"jobs": 0}}},
        "moves": {"earlier": 1, "later": 0, "unmoved": 4, "only_before": 1, "only_after": 0, "most": most},
        "recorded": None,
        "remarks": ["3 jobs count as if they ran until their time limits."],
        "lines": None,
        "lines_left_out": 0,
    }


def audited(number: int, actor: str, action: str, name: str, of: str | None, **detail: Any) -> Json:
    return {
        "id": number,
        "time": when(-3600 * (6 - number)),
        "actor": actor,
        "action": action,
        "object": name,
        "tenant": of,
        "detail": detail,
    }


def audit_head(**change: Any) -> Json:
    """The end of the audit log's chain, written outside and checked an hour ago."""
    return {
        "link": 1204,
        "hash": "3f9a" * 16,
        "begins": when(-86400),
        "written": when(-600),
        "written_link": 1200,
        "checked": when(-3600),
        "sound": True,
        **change,
    }


def decided(user: str, name: str, **change: Any) -> Json:
    """A decision of the scheduler as an admin's list has it."""
    victim = {
        "job": "lstm",
        "user": "carol",
        "tenant": "blue",
        "priority": 50,
        "lost_work": 12.5,
        "lost_unit": "core-seconds",
    }
    decision = {
        "time": when(-300),
        "kind": "admitted",
        "summary": "admitted on node node-1: the best place with room",
        "waited_for": "waits for quota",
        "waited_reason": "WaitingForQuota",
        "changed": ["job digits-3 of bob ended"],
        "passed": [{"job": "wide", "user": "bob", "tenant": "red", "reason": "WaitingForResources"}],
        "passed_count": 3,
        "position": 1,
        "policy": "fair",
        "order": "priority",
        "share": 0.25,
        "rule": "fgd",
        "nodes": [
            {"node": "node-1", "ranks": 2, "chosen": True, "free_after": "2 cpu", "score": [0.0]},
            {"node": "node-2", "ranks": 2, "chosen": False, "free_after": "6 cpu", "score": [1.0]},
        ],
        "only": False,
        "victims": [
            victim
            | {
                "over_nominal": True,
                "chosen": True,
                "right": "reclaim",
                "gives": 0,
                "why": "loses the least work",
            }
        ],
        "spared": ["2 jobs have no lower priority"],
    }
    return {"user": user, "job": name, "tenant": "red", "decision": decision | change}


def fact(key: str, label: str, value: str, who: str = "") -> Json:
    """A row of the table behind a reason."""
    return {
        "key": key, "dimension": None, "label": label, "value": value, "number": None, "who": who,
        "detail": {"id": "{value}", "args": {"value": value}},
    }  # fmt: skip


def why_of(name: str) -> Json:
    """Why a queued job waits, with the facts behind it."""
    facts = [
        fact("asked", "asked", "2 cpu"),
        fact("nominal", "its own", "4 cpu"),
        fact("inuse", "in use", "4 cpu", "job digits-3 of bob, the notebook of bob"),
        fact("lent", "lent", "1 cpu", "tenant blue"),
        fact("free", "free", "0 cpu"),
    ]
    reason = {
        "reason": "WaitingForQuota",
        "message": "Needs 2 cpu, 0 free.",
        "detail": {},
        "facts": facts,
        "numbers": {},
    }
    return {"job": name, "phase": "queued", "reasons": [reason], "position": 1, "queue_length": 2}


def file(name: str, kind: str = "file", size: int = 0) -> Json:
    """An entry of a directory."""
    return {"name": name, "kind": kind, "size": size, "modified": when(-600)}


def app(name: str, **change: Any) -> Json:
    """An app, of whose two replicas one answers and the other waits."""
    one = {
        "replica": 0, "phase": "running", "ready": True, "generation": 1, "node": "node-1", "reason": None,
        "message": "", "detail": {}, "position": None, "expected_start": None, "started_at": when(-600), "forecast": None,
    }  # fmt: skip
    waits = {
        "replica": 1, "phase": "queued", "ready": False, "node": None, "started_at": None, "position": 2,
        "reason": "QuotaExceeded", "message": "red may use 4 cpu",
    }  # fmt: skip
    return {
        "name": name, "user": "ann", "tenant": "red", "gpu": 0.0, "cpu": 1.0, "model_name": "digits@2", "port": 31000,
        "url": f"/services/mlp/apps/ann/{name}/", "address": f"http://hub.test/services/mlp/apps/ann/{name}/", "state": "ready", "phase": "running", "uid": name, "ram": 1024, "gpu_kind": None,
        "replicas": 2, "idle": 900, "concurrency": 8, "under_way": 1.5, "wanted": 2, "ready": 1, "command": None, "command_port": 8080, "runtime": "plain", "env_name": None,
        "priority": "normal", "access": "tenant", "generation": 1, "failures": 0, "message": "1 of 2 replicas answer",
        "detail": {}, "tail": "", "running": [one, {**one, **waits}], "created_at": when(-900), **change,
    }  # fmt: skip


def model(name: str, version: int = 1, **change: Any) -> Json:
    """A version of a model that is ready."""
    lineage = {
        "job": "digits", "run": version, "job_uid": "u", "runtime": "mpi", "entry": None, "code_sha256": "ab" * 32,
        "args": [], "env": {}, "workers": 2, "data": [], "metrics": {"accuracy": 0.98, "loss": 0.07},
        "taken_at": when(-900),
    }  # fmt: skip
    return {
        "name": name, "version": version, "user": "ann", "tenant": "red", "uid": f"{name}{version}",
        "size": 3 << 20, "files": 2, "src": f"jobs/digits@{version}/ckpt", "state": "ready", "stage": "none",
        "format": "safetensors", "main": "model.safetensors", "pickled": False, "facts": {"tensors": "4"},
        "message": "", "lineage": lineage, "created_at": when(-900), **change,
    }  # fmt: skip


def idle_holding(
    kind: str, user: str, name: str, run: int, idle_s: float, ends: str | None = None, **held: float
) -> Json:
    """Return what a team holds and nobody uses."""
    plain: Json = {"cpu": 2.0, "gpu": 0.0, "ram": 4096, "left_s": None, "kept_s": 0.0, "claims": False}
    return {
        "kind": kind,
        "user": user,
        "name": name,
        "run": run,
        "idle_s": idle_s,
        "idle_since": "2026-09-24T08:00:00Z",
        "ends": ends,
        **plain,
        **held,
    }

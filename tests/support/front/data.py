"""The data and answers of the front end's stand-in service: tenants, users, jobs and their streams, in the wire's shapes."""

from __future__ import annotations

import math
import time
from typing import Any
from urllib.parse import unquote

from support.clients.sweep_shapes import curves, sweep
from support.front.accounting import FrontAccounting
from support.front.admin import AdminFront
from support.front.alerts import AlertsFront
from support.front.apps import FrontApps
from support.front.environments import FrontEnvironments
from support.front.files import FrontFiles
from support.front.notices import FrontNotices
from support.front.over_time import FrontOverTime
from support.front.programs import services
from support.front.runs import FrontRuns
from support.front.secrets import secrets
from support.front.shapes import (
    GIB,
    SCHEDULING,
    WAITS,
    Json,
    audit_head,
    audited,
    entry,
    file,
    forecast,
    holding,
    idle_holding,
    job,
    model,
    simulation,
    tenant,
    used_over,
    when,
    why_of,
    work,
)
from support.front.teams import FrontTeams

SERVERS_STAY = "a notebook server that runs into the window keeps its resources until it is stopped"


CHANGED: Json = {
    "before": {"cpu": 3.0, "ram": 4096, "borrowing_limit": {"cpu": 1.0, "ram": 512}},
    "after": {"cpu": 0.5, "ram": 4096, "borrowing_limit": {"cpu": 2.0, "ram": 512}, "cohort": "main"},
}
"""What an older hub wrote of a change: the whole of both."""


def runtime_of(tenant: str, name: str) -> Json:
    """Return a tenant's runtime that says nothing but its name."""
    return {
        "name": name, "title": name, "description": "", "ps": False, "tenant": tenant, "state": "submitted",
        "program": ["{program}"], "env": {}, "roles": [{"name": "worker", "count": None, "program": None}],
        "launcher": None, "rank_env": "RANK", "needs": None, "image": None, "ends_with": None, "linger_s": 10.0,
        "success": [0], "changed_by": "rita", "changed_at": when(),
    }  # fmt: skip


class Data:
    """The world of the stand-in; a fresh one has two tenants, four users, and jobs in several states."""

    def __init__(self) -> None:
        self.logged_in = True
        self.unsynced = False  # whether streams stop before they have caught up
        self.xsrf = "2|token"
        self.session: Json = {
            "username": "ann",
            "admin": True,
            "tenants": ["default", "red"],
            "tenant_admin": ["red"],
            "xsrf": self.xsrf,
            "version": "0.1.0",
            "keeping": {"job_days": 90.0, "jobs": 10_000, "job_mib": 1024.0},
            "warnings": [],
            "language": "",
        }
        self.files: list[Json] = [
            file("step", "directory"), file("model.safetensors", size=3 << 20), file("latest", "link"),
        ]  # fmt: skip
        why = "it contains no model, but notes.txt"
        self.datasets = FrontFiles()
        self.accounting = FrontAccounting()
        self.over_time = FrontOverTime()
        self.environments = FrontEnvironments()
        self.runs = FrontRuns()
        self.notices = FrontNotices()
        self.models: list[Json] = [
            model("big", state="creating", format="", files=9000, size=7 << 30),
            model("digits", 2, stage="production"),
            model("digits", stage="archived", format="pickle", pickled=True),
            model("notes", state="error", message=why, format="", size=0),
        ]
        self.apps = FrontApps()
        self.job_models: list[Json] = []
        self.forced: dict[str, tuple[int, Any]] = {}
        self.page_of: dict[str, int] = {}  # rows on one page of these lists
        red = tenant(
            "red",
            cpu_inuse=3.2,
            ram_inuse=3072,
            rom_inuse=64 * GIB,
            members=2,
            running=1,
            waiting=2,
            description="Vision",
        )
        self.sweep: Json = sweep()
        self.previews: list[Json] = []  # what was asked
        default = tenant(
            "default", cpu=None, gpu=None, ram=None, rom=None, cpu_inuse=0.4, ram_inuse=2048, members=4
        )
        blue = tenant(
            "blue",
            cpu=16.0,
            gpu=2.0,
            ram=65536,
            cpu_inuse=15.0,
            gpu_inuse=2.0,
            ram_inuse=70000,
            members=1,
            running=3,
            cohort="main",
            borrowing_limit={"ram": 8192},
            lending_limit={"cpu": 4.0},
            borrowed={"ram": 70000 - 65536},
            free={"cpu": 3.0, "gpu": 0.0, "ram": 3728},
        )
        teal = tenant(
            "teal",
            cpu=8.0,
            ram=16384,
            cpu_inuse=2.0,
            ram_inuse=4096,
            members=3,
            running=1,
            cohort="main",
            lending_limit={"cpu": 2.0},
            reserved={"cpu": 2.0},
            lowered={
                "since": when(-7200),
                "share": 0.5,
                "lending_limit": {"cpu": 5.0},
                "reserved": {"cpu": 1.0},
                "message": "teal has been idle for 2 days",
            },
            lent={"ram": 70000 - 65536},
            lendable={"cpu": 6.0, "ram": 7824},
            free={"cpu": 7.0, "ram": 7824},
        )
        self.teams = FrontTeams()
        self.tenants: dict[str, Json] = {"default": default, "red": red, "blue": blue, "teal": teal}
        self.members: dict[str, dict[str, Json]] = {
            "red": {u: self._member("red", u, r) for u, r in (("ann", "admin"), ("bob", "member"))},
            "default": {},
            "blue": {},
            "teal": {},
        }
        self.runtimes: dict[str, dict[str, Json]] = {}
        self.programs: dict[str, dict[str, Json]] = {}
        self.secrets: dict[str, dict[str, Json]] = {}
        self.bookings: dict[str, list[Json]] = {
            "teal": [
                {
                    "tenant": "teal", "name": "review", "start": when(-1800), "end": when(5400), "open": True,
                    "amount": {"cpu": 4.0, "ram": 8192}, "made_by": "ann", "made_at": when(-90000),
                    "short": None, "notes": [SERVERS_STAY],
                },
                {
                    "tenant": "teal", "name": "conference-demo", "start": when(400_000), "end": when(500_000),
                    "open": False, "amount": {"cpu": 8.0, "gpu:a100": 2.0}, "made_by": "ann", "made_at": when(),
                    "short": {
                        "since": when(-60), "left": {"cpu": 6.0, "gpu:a100": 2.0},
                        "message": "needs 8 cpu, but 6 is left: the quota of teal is 6 cpu",
                    },
                    "notes": [SERVERS_STAY],
                },
            ]
        }  # fmt: skip
        self.tokens: list[Json] = [
            {
                "id": "a12", "note": "nightly", "scopes": ["custom:mlp:jobs:read"], "created": when(-90_000),
                "expires": when(900_000), "last_used": when(-3600), "last_from": "10.0.0.7", "current": False,
                "ends_soon": False,
            },
        ]  # fmt: skip
        self.leaving: Json = {
            "username": "", "state": "Actived", "tenants": ["default", "red"], "running": 2, "waiting": 1,
            "suspended": 0, "ended": 4, "servers": 1, "tokens": 3, "datasets": 2,
            "models": 1, "stored": 3 << 30, "apps": 1, "bytes": 5_000_000_000, "departure": None,
        }  # fmt: skip
        self.users: list[Json] = [
            self._user("ann", admin=True, tenants=["default", "red"]),
            self._user("bob", tenants=["default", "red"]),
            self._user("carol", tenants=["default"]),
            self._user("dave", state="NotActive", tenants=[]),
        ]
        self.queue: list[Json] = [
            entry(
                "digits-4",
                position=1,
                reason="WaitingForQuota",
                message=WAITS,
                expected_start=when(1800),
                forecast=forecast(900, 1500),
            ),
            entry(
                "digits-5",
                position=2,
                user="ann",
                reason="WaitingForQuota",
                message=WAITS,
                cpu=1.0,
                expected_because="no time can be estimated: digits-3 of bob has no time limit",
            ),
            entry("digits-3", phase="running", cpu=3.0, ram=2048, waiting_since=None, started_at=when(-400)),
            entry(
                "lstm",
                tenant="blue",
                user="carol",
                phase="running",
                cpu=15.0,
                gpu=2.0,
                ram=70000,
                waiting_since=None,
                started_at=when(-9000),
            ),
        ]
        holders = [
            holding("digits-3", "bob", cpu=3.0, ram=2048),
            holding("notebook of bob", "bob", applier="sp", cpu=0.2, ram=1024),
            holding("app line of bob, replica 0", "bob", cpu=1.0, ram=1024, job=None, app="line", replica=0),
            holding("lstm", "carol", cpu=1.0, ram=4096),
        ]
        self.admin = AdminFront()
        self.alerts = AlertsFront()
        self.holdings = {"red": holders[:3]}
        self.nodes: list[Json] = [self._node("node-1", holders), self._node("node-2", [], up=False)]
        self.jobs: dict[tuple[str, str], Json] = {}
        self.frames: dict[str, list[Json]] = {"metrics": [], "log": [], "events": [], "attempts": []}
        self.why: Json | None = None
        self.decisions: list[Json] = []
        self.keeps = True
        """Whether a job can be kept yet."""
        self.idle_work = [
            idle_holding("server", "bo", "", 0, 9 * 3600.0, left_s=1500.0, ends="stop"),
            idle_holding(
                "job",
                "ann",
                "pretrain",
                2,
                7800.0,
                gpu=2.0,
                cpu=16.0,
                ram=65536,
                left_s=540.0,
                ends="suspend",
            ),
            idle_holding("job", "cy", "search", 1, 5400.0, gpu=0.5, ends="suspend", kept_s=7200.0),
            idle_holding("server", "dee", "big", 0, 4000.0, ram=32768),
        ]
        self.audit = [
            audited(
                5, "system", "booking.short", "conference-demo", "teal", message="needs 8 cpu, 6 are left"
            ),
            audited(4, "ann", "tenant.update", "red", "red", **CHANGED),
            audited(
                3, "ann", "member.set", "bob", "red", role="member", was="admin", times=7, last=when(-60)
            ),
            audited(2, "system", "jobs.expire", "bob", None, jobs=["a-0"], why="ended more than 90 days ago"),
            audited(1, "ann", "tenant.create", "<b>x</b>" + "y" * 60, None, description="long " * 80),
        ]
        self.audit_head = audit_head()
        self.made: list[Json] = []
        self.simulation = simulation(work(9000.0, 1), work(600.0, 0))
        self.simulated: list[Json] = []
        self.scheduling = dict(SCHEDULING)
        self.seq = 0
        self.lines = 0
        self._usual_jobs()

    def _usual_jobs(self) -> None:
        failure = {"cause": "out-of-memory", "rank": 1, "exit_code": None, "signal": 9}
        failure |= {"message": "rank 1 used more than its 512 MiB", "tail": "Traceback ...\nMemoryError"}
        ended = {"started_at": when(-4000), "finished_at": when(-3900), "ran_s": 100.0, "ranks": []}
        for made in (
            job("digits"),
            job(
                "digits-5",
                phase="queued",
                state="creating",
                progress=0,
                position=2,
                message=WAITS,
                started_at=None,
                progress_since=None,
                waiting_since=when(-130),
                waited_s=0.0,
                ranks=[],
            ),
            job("mnist-tf", phase="finished", state="finished", runtime="tf", progress=100, ps=1, **ended),
            job("big", phase="failed", state="error", failure=failure, progress=13, **ended),
            job("old", phase="cancelled", state="error", progress=5, **ended),
        ):
            self.jobs[made["user"], made["name"]] = made

    @staticmethod
    def _member(tenant_name: str, user: str, role: str) -> Json:
        return {"tenant": tenant_name, "user": user, "role": role, "source": "manual"}

    @staticmethod
    def _user(name: str, **change: Any) -> Json:
        return {
            "username": name,
            "state": "Actived",
            "tenants": [],
            "admin": False,
            "default_tenant": "default",
            "new": change.get("state") == "NotActive",
            "applied_for": None,
            "servers": 0,
        } | change

    @staticmethod
    def _node(name: str, holders: list[Json], *, up: bool = True) -> Json:
        return {
            "name": name,
            "up": up,
            "schedulable": up,
            "conditions": [] if up else [{"kind": "NotReady", "message": "it does not answer"}],
            "taints": [],
            "cpu": 4.0,
            "gpu": 0.0,
            "gpu_kind": None,
            "ram": 16384,
            "cpu_allocatable": 8.0,
            "ram_allocatable": 15360,
            "cpu_inuse": sum(h["cpu"] for h in holders),
            "gpu_inuse": 0.0,
            "ram_inuse": sum(h["ram"] for h in holders),
            "cpu_others": 0.0,
            "gpu_others": 0.0,
            "ram_others": 0,
            "labels": {},
            "holders": holders,
        }

    # ------------------------------------------------------------ streams

    def point(self, step: int, of: int) -> Json:
        """The next metric point of a rank, reported now."""
        self.seq += 1
        loss = 2.3 * math.exp(-step / 400) + 0.05 * math.sin(step / 7 + of) + 0.1 + 0.02 * of
        values = {"loss": loss, "accuracy": 1 - loss / 2.6, "learning_rate": 0.1 / (1 + step / 200)}
        return {"seq": self.seq, "time": time.time(), "rank": of, "step": step, "values": values}

    def history(self, steps: int, ranks: int = 2) -> None:
        """Points that were reported before anybody watched."""
        points = [self.point(step, of) for step in range(steps) for of in range(ranks)]
        self.keep({"type": "metrics", "points": points})

    def log(self, text: str, of: int = 0, stream: str = "stdout") -> Json:
        self.lines += 1
        time_ = f"2026-01-01T10:{self.lines // 60 % 60:02}:{self.lines % 60:02}.{self.lines:09}Z"
        return {
            "type": "log",
            "rank": of,
            "lines": [{"time": time_, "stream": stream, "text": text}],
            "offset": self.lines,
        }

    def event(self, seq: int, kind: str, message: str) -> Json:
        return {"seq": seq, "time": when(-130 + 3 * seq), "kind": kind, "message": message, "reason": None}

    def keep(self, frame: Json) -> None:
        kind = frame["type"]
        if kind in self.frames:
            self.frames[kind].append(frame)
        elif kind == "job":
            self.jobs[frame["job"]["user"], frame["job"]["name"]] = frame["job"]
        elif kind == "why":
            self.why = frame["why"]

    def replay(self, user: str, name: str, since: int) -> list[Json]:
        record = self.jobs.get(self._key(user, name))
        frames: list[Json] = [{"type": "job", "job": record}] if record else []
        frames += self.frames["events"] + self.frames["attempts"][-1:] + self.frames["log"]
        points = [p for f in self.frames["metrics"] for p in f["points"] if p["seq"] > since]
        frames += [{"type": "metrics", "points": points[i : i + 1000]} for i in range(0, len(points), 1000)]
        if self.why:
            frames.append({"type": "why", "why": self.why})
        if self.unsynced:
            return frames
        frames.append({"type": "synced"})
        if record and record["phase"] in {"finished", "failed", "cancelled"}:
            frames.append({"type": "end"})
        return frames

    # --------------------------------------------------------------- REST

    def answer(self, method: str, path: str, body: Json, query: Json | None = None) -> tuple[int, Any]:
        """Answer a request as the service would."""
        parts = [unquote(p) for p in path.strip("/").split("/")]
        verb = ""
        if ":" in path.rsplit("/", 1)[-1]:
            parts[-1], _, verb = parts[-1].rpartition(":")
        match method, parts, verb:
            case "GET", ["session"], "":
                return 200, self.session
            case "PATCH", ["users", _, "preferences"], "":
                self.session |= body
                return 200, body
            case _, ["tenants", _, "environments", *_], _:
                return self.environments.answer(method, parts, body or {})
            case "GET", ["prices"], "":
                return 200, self.accounting.prices()
            case "GET", [*_, "budgets"], "":
                return 200, [] if self.accounting.empty else self.accounting.budgets()
            case "GET", ["tenants", name, "budget"], "":
                mine = [one for one in self.accounting.budgets() if one["tenant"] == name]
                if self.accounting.empty or not mine:
                    return 403, {"reason": "NotFound", "msg": "this team has no budget"}
                return 200, mine[0]
            case "GET", ["users", _, "jobs", _, "cost"], "":
                return 200, {"currency": "EUR", "cost": "0.314000", "per_hour": "0.420000", "final": False}
            case "GET", [*_, "accounting"], "":
                return 200, self.accounting.lines(query or {})
            case "GET", ["over-time"], "":
                return 200, self.over_time.answer(None, query or {})
            case "GET", ["tenants", name, "over-time"], "":
                return 200, self.over_time.answer(name, query or {})
            case "GET", ["users"], "":
                return 200, self.users
            case "PUT", ["users", name], ("approve" | ""):
                found = next(u for u in self.users if u["username"] == name)
                found |= {"state": "Actived" if verb else "NotActive", "new": False}
                return 200, found
            case "PUT", ["users", name], "password":
                return 200, {"username": name, "password": "made-up-password"}
            case "PUT", ["users", name], ("logout" | "stop_servers" | "admin"):
                found = next(u for u in self.users if u["username"] == name)
                found |= body if verb == "admin" else {"servers": 0}
                return 200, found
            case "DELETE", ["users", name], "":
                found = next(u for u in self.users if u["username"] == name)
                self.users.remove(found)
                return 200, found
            case "GET", ["users", _, "jobs" | "models", _, "files"], "":
                return 200, self.files
            case _, ["users", _, "teams", *rest], _:
                return self.teams.of_user(method, rest, body)
            case "GET", ["users", _, "idle_servers"], _:
                return 200, []
            case "PUT", ["users", _, "jobs", name], "keep":
                if not self.keeps:
                    text = f"job {name} was kept for 1 d without using its GPUs, which is all there is"
                    return 403, {"msg": text, "reason": "WrongState"}
                kept = {"idle_s": 7260.0, "left_s": None, "kept_s": 3600.0 * body["hours"], "ends": "suspend"}
                return 200, job(name.partition("@")[0], gpu=2.0, idle=kept, version=3)
            case _, ["tenants", _, "idle_policy" | "idle_job_policy"], _:
                return 200, body or {"after_minutes": 120, "grace_minutes": 30}
            case "GET", ["tenants", _, "idle_work"], _:
                return 200, self.idle_work
            case "GET", ["quota_requests"], _:
                return 200, [r for r in self.teams.requests if r["state"] == "open"]
            case "GET", ["tenants", name, "audit"], _:
                return 200, [e for e in self.audit if e["tenant"] == name]
            case _, ["tenants", _, "runs", *rest], _:
                return self.runs.answer(method, ["users", "ann", "runs", *rest], verb, body, query or {})
            case _, ["tenants", name, ("quota_requests" | "joins" | "caps"), *_], _:
                if verb == "approve" and parts[2] == "joins":
                    self.members[name][parts[3]] = self._member(name, parts[3], "member")
                return self.teams.of_tenant(method, name, parts[2:], verb, body)
            case "PUT", ["users", user, "jobs", name], "update":
                self.teams.bodies.append((f"update {user}/{name}", body))
                return 200, self.jobs[self._key(user, name)] | {"put_first": body.get("place") == "first"}
            case _, ["users", _, "runs", *_], _:
                return self.runs.answer(method, parts, verb, body, query or {})
            case "PUT", ["users", _, "jobs", _], "resubmit" if body:
                self.runs.again.append(body)
                return self._job(method, parts[1], parts[3], verb)
            case _, ["users", _, "datasets", *_], _:
                return self.datasets.answer(method, parts, verb, body)
            case "GET", ["users", "ann", "sweeps"], "":
                return 200, [{**sweep(), "trials": []}, sweep("older", "finished", run=2)]
            case "GET", ["users", "ann", "sweeps", "search@1"], "":
                return 200, self.sweep
            case "PUT", ["users", "ann", "sweeps", "search@1"], "cancel" | "extend":
                self.sweep = {**self.sweep, "state": "ending" if verb == "cancel" else "running"}
                self.sweep["budget_trials"] += (body or {}).get("trials", 0)
                return 200, self.sweep
            case "GET", ["users", "ann", "sweeps", "search@1", "curves"], "":
                return 200, curves()
            case _, ["users", _, "apps", *_], _:
                return self.apps.answer(method, parts, verb, body)
            case "GET", ["users", _, "jobs", _, "models"], "":
                return 200, self.job_models
            case "POST", ["users", _, "models"], "":
                self.models.insert(0, model(body["name"], state="creating", format="", src=body["src"]))
                return 201, self.models[0]
            case "GET", ["users", name, "models"], "":
                return 200, [m for m in self.models if m["user"] == name]
            case _, ["users", user, "models", reference], _:
                return self._model(user, reference, body)
            case "GET", ["users", name, "jobs"], "":
                return 200, [j for (user, _), j in self.jobs.items() if user == name]
            case _, ["users", user, "jobs", name], _:
                return self._job(method, user, name, verb)
            case _, ["users", _, ("notifications" | "notices") as what], _:
                return self.notices.answer(method, what, verb, body)
            case _, ["users" | "tenants" as whose, name, "secrets", *rest], "":
                return secrets(self.secrets.setdefault(name, {}), method, whose[:-1], rest, body)
            case "GET", ["users", _, "tokens"], "":
                return 200, self.tokens
            case "GET", ["users", name, "leaving"], "":
                return 200, self.leaving | {"username": name}
            case "GET", ["users", _, "quota"], "":
                return 200, [self._usage(t) for t in self.session["tenants"] if t in self.tenants]
            case "GET", ["queue"], "":
                tenant = (query or {}).get("tenant")
                return 200, [e for e in self.queue if tenant in {None, "", e["tenant"]}]
            case "GET", ["scheduling"], "":
                return 200, self.scheduling
            case "GET", ["overview"], "":
                return 200, self.admin.overview(list(self.tenants.values()), self.queue, self.nodes)
            case "GET", ["runs"], "":
                return self.runs.answer(method, ["users", "ann", "runs"], verb, {}, query or {})
            case _, ["announcements", *rest], _:
                return self.admin.announced(method, rest, verb, body or {})
            case _, ["tenants", name, "announcements", *rest], _:
                return self.admin.announced(method, rest, verb, body or {}, name)
            case _, ["alerts" | "silences", *_], "":
                return self.alerts.answer(method, parts, body or {})
            case _, ["tenants", name, "alerts" | "silences", *_], "":
                return self.alerts.answer(method, parts[2:], body or {}, name)
            case "POST", ["users"], "import":
                return self.admin.imports_people(body or {})
            case _, ["nodes", name, *_], _:
                return self.admin.node(self.nodes, name, verb, body or {})
            case "GET", ["nodes"], "":
                return 200, self.nodes
            case "POST", ["tenants", name, "runtimes", runtime], "approve" | "disable":
                self.runtimes[name][runtime]["state"] = {"approve": "approved", "disable": "disabled"}[verb]
                return 200, self.runtimes[name][runtime]
            case _, ["tenants", name, "services", *rest], _:
                return services(self.programs.setdefault(name, {}), method, rest, verb, body)
            case "POST", ["tenants", name], "preview":
                self.previews.append(body)
                return 200, self._preview(name, body)
            case "POST", ["simulate"], "":
                self.simulated.append(body)
                return 200, self.simulation
            case "GET", ["users", _, "jobs", _, "decisions"], "":
                return 200, self.decisions
            case "GET", ["users", _, "jobs", name, "why"], "":
                return 200, why_of(name)
            case "GET", ["audit"], "":
                return 200, self.audit
            case "GET", ["audit"], "head":
                return 200, self.audit_head
            case "GET", ["decisions"], "":
                return 200, self.made
            case _, ["tenants", *_], "":
                return self._tenant(method, parts[1:], body)
        return 403, {"msg": f"{path} does not exist", "reason": "NotFound"}

    def _key(self, user: str, reference: str) -> tuple[str, str]:
        """Where a run lies: the latest below its name, an earlier one below NAME@RUN."""
        name, _, run = reference.partition("@")
        latest = self.jobs.get((user, name))
        return (user, name) if latest and run == str(latest["run"]) else (user, reference)

    def _job(self, method: str, user: str, reference: str, verb: str) -> tuple[int, Any]:
        key = self._key(user, reference)
        name, record = key[1], self.jobs.get(key)
        if record is None:
            return 403, {"msg": f"job {name} does not exist", "reason": "NotFound"}
        phases = {"cancel": "cancelled", "suspend": "suspended", "resume": "queued"}
        if verb in phases:
            record |= {"phase": phases[verb], "version": record["version"] + 1}
        if method == "DELETE":
            record = dict(self.jobs.pop(key), phase="deleting")
        return 200, record

    def _model(self, user: str, reference: str, body: Json) -> tuple[int, Any]:
        for found in self.models:
            if (found["user"], f"{found['name']}@{found['version']}") == (user, reference):
                found.update(body or {})
                return 200, found
        return 403, {"msg": f"model {reference} does not exist", "reason": "NotFound"}

    def _usage(self, name: str) -> Json:
        return {
            "tenant": self.tenants[name],
            "holdings": self.holdings.get(name, []),
            "history": used_over(7 * 24) if name == "red" else [],
            "jobs": {"cpu_hours": 412.25, "gpu_hours": 31.5, "cpu_most": 8, "gpu_most": 2},
        }

    def _preview(self, name: str, body: Json) -> Json:
        """Answer by cpu alone, in the words of the service."""
        record, notes, over = self.tenants[name], [], []
        used, quota = record["cpu_inuse"], body.get("cpu")
        waiting = [e for e in self.queue if e["tenant"] == name and e["phase"] == "queued"]
        running = record["running"]
        free = math.inf if quota is None else quota - used
        start, still = [], []
        for each in waiting:
            fits = each["cpu"] <= free
            (start if fits else still).append(each)
            free -= each["cpu"] if fits else 0
        if start:
            names = ", ".join(e["name"] for e in start)
            notes.append({"tone": "good", "text": f"{len(start)} waiting jobs could start: {names}"})
        if quota is not None and used > quota:
            above = round(used - quota, 3)
            over.append(
                {"tenant": name, "dimension": "cpu", "inuse": used, "may_hold": quota, "above": above}
            )
            notes.append({"tone": "bad", "text": f"{used:g} cpu in use, {above:g} cpu above the new quota"})
            text = f"{running} running job continues; the change stops nothing, and nothing new starts until enough"
            notes.append({"tone": "idle", "text": f"{text} is given back"})
        if still:
            names = ", ".join(e["name"] for e in still)
            notes.append({"tone": "idle", "text": f"{len(still)} jobs would still wait: {names}"})
        return {
            "tenant": name,
            "over": over,
            "could_start": [{k: e[k] for k in ("user", "name", "tenant")} for e in start],
            "waiting": [
                {
                    **{k: e[k] for k in ("user", "name", "reason", "message")},
                    "since": e["submitted_at"],
                }
                for e in still
            ],
            "stopped": [],
            "back_inside": when(1800) if over else None,
            "bookings": [],
            "back_inside_because": "job digits-3 of bob ends by then at the latest" if over else "",
            "notes": notes or [{"tone": "idle", "text": "No running or waiting job is affected"}],
        }

    def _tenant(self, method: str, rest: list[str], body: Json) -> tuple[int, Any]:
        match method, rest:
            case "GET", []:
                return 200, list(self.tenants.values())
            case "POST", []:
                if body["name"] == "reserved":
                    return 403, {
                        "msg": "name reserved is kept for the platform; choose another",
                        "reason": "Conflict",
                    }
                self.tenants[body["name"]] = tenant(body["name"]) | body
                self.members[body["name"]] = {}
                return 201, self.tenants[body["name"]]
        name = rest[0]
        if name not in self.tenants:
            return 403, {"msg": f"team {name} does not exist", "reason": "NotFound"}
        match method, rest[1:]:
            case "PUT", []:
                self.tenants[name] |= body
            case "DELETE", []:
                if self.tenants[name]["running"]:
                    return 403, {
                        "msg": f"{name} has 1 running job; cancel it or wait for its end",
                        "reason": "WrongState",
                    }
                return 200, self.tenants.pop(name)
            case "GET", ["usage"]:
                return 200, self._usage(name)
            case "GET", ["queue"]:
                return 200, [e for e in self.queue if e["tenant"] == name]
            case "GET", ["bookings"]:
                return 200, self.bookings.get(name, [])
            case "POST", ["bookings"]:
                made = {**body, "tenant": name, "open": False, "made_by": "root", "made_at": when()}
                made |= {"short": None, "notes": [SERVERS_STAY]}
                self.bookings.setdefault(name, []).append(made)
                return 201, made
            case "DELETE", ["bookings", window]:
                self.bookings[name] = [w for w in self.bookings[name] if w["name"] != window]
                return 200, {}
            case "GET", ["runtimes"]:
                return 200, list(self.runtimes.get(name, {}).values())
            case "PUT", ["runtimes", runtime]:
                state = "approved" if self.session["admin"] else "submitted"
                made = runtime_of(name, runtime) | body | {"state": state, "changed_by": "ann"}
                self.runtimes.setdefault(name, {})[runtime] = made
                return 200, made
            case "DELETE", ["runtimes", runtime]:
                return 200, self.runtimes[name].pop(runtime)
            case "GET", ["members"]:
                return 200, list(self.members[name].values())
            case "PUT", ["members", user]:
                if user not in {u["username"] for u in self.users}:
                    return 403, {"msg": f"user {user} does not exist", "reason": "NotFound"}
                self.members[name][user] = self._member(name, user, body.get("role", "member"))
                left = "is no longer in default" if self.session["admin"] else "stays in default too"
                return 200, {**self.members[name][user], "note": f"{user} {left}"}
            case "DELETE", ["members", user]:
                return 200, self.members[name].pop(user)
        return 200, self.tenants[name]

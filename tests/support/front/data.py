"""The data and answers of the front end's stand-in service: tenants, users, jobs and their streams, in the wire's shapes."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from support.clients.sweep_shapes import curves, sweep
from support.front.accounting import FrontAccounting
from support.front.admin import AdminFront
from support.front.alerts import AlertsFront
from support.front.apps import FrontApps
from support.front.environments import FrontEnvironments
from support.front.files import FrontFiles
from support.front.jobs import FrontJobs
from support.front.notices import FrontNotices
from support.front.over_time import FrontOverTime
from support.front.programs import services
from support.front.runs import FrontRuns
from support.front.secrets import secrets
from support.front.shapes import (
    SCHEDULING,
    Json,
    audit_head,
    audited,
    file,
    idle_holding,
    job,
    model,
    simulation,
    when,
    why_of,
    work,
)
from support.front.teams import FrontTeams
from support.front.tenants import FrontTenants, member

CHANGED: Json = {
    "before": {"cpu": 3.0, "ram": 4096, "borrowing_limit": {"cpu": 1.0, "ram": 512}},
    "after": {"cpu": 0.5, "ram": 4096, "borrowing_limit": {"cpu": 2.0, "ram": 512}, "cohort": "main"},
}
"""What an older hub wrote of a change: the whole of both."""


class Data(FrontJobs, FrontTenants):
    """The world of the stand-in; a fresh one has four tenants, four users, and jobs in several states."""

    def __init__(self) -> None:
        FrontJobs.__init__(self)
        FrontTenants.__init__(self)
        self.logged_in = True
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
        self.sweep: Json = sweep()
        self.previews: list[Json] = []  # what was asked
        self.teams = FrontTeams()
        self.programs: dict[str, dict[str, Json]] = {}
        self.secrets: dict[str, dict[str, Json]] = {}
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
        self.admin = AdminFront()
        self.alerts = AlertsFront()
        self.nodes: list[Json] = [self._node("node-1", self.holders), self._node("node-2", [], up=False)]
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
            "last_activity": when(-3600),
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
                return (
                    200,
                    [] if self.accounting.empty or not self.accounting.priced else self.accounting.budgets(),
                )
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
            case "GET", ["users", name], "":
                return 200, next(u for u in self.users if u["username"] == name)
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
                    self.members[name][parts[3]] = member(name, parts[3], "member")
                return self.teams.of_tenant(method, name, parts[2:], verb, body)
            case "PUT", ["users", user, "jobs", name], "update":
                self.teams.bodies.append((f"update {user}/{name}", body))
                return 200, self.jobs[self.key(user, name)] | {"put_first": body.get("place") == "first"}
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
                return 200, [self.usage(t) for t in self.session["tenants"] if t in self.tenants]
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
                return 200, self.preview(name, body)
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
                return self.of_tenants(method, parts[1:], body)
        return 403, {"msg": f"{path} does not exist", "reason": "NotFound"}

    def _job(self, method: str, user: str, reference: str, verb: str) -> tuple[int, Any]:
        key = self.key(user, reference)
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

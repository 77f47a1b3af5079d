"""Tenants of the stand-in service: their quota, members, queue, booked windows and runtimes."""

from __future__ import annotations

import math
from typing import Any

from support.front.shapes import GIB, WAITS, Json, entry, forecast, holding, tenant, used_over, when

SERVERS_STAY = "a notebook server that runs into the window keeps its resources until it is stopped"


def runtime_of(tenant: str, name: str) -> Json:
    """Return a tenant's runtime that says nothing but its name."""
    return {
        "name": name, "title": name, "description": "", "ps": False, "tenant": tenant, "state": "submitted",
        "program": ["{program}"], "env": {}, "roles": [{"name": "worker", "count": None, "program": None}],
        "launcher": None, "rank_env": "RANK", "needs": None, "image": None, "ends_with": None, "linger_s": 10.0,
        "success": [0], "changed_by": "rita", "changed_at": when(),
    }  # fmt: skip


def member(tenant_name: str, user: str, role: str) -> Json:
    return {"tenant": tenant_name, "user": user, "role": role, "source": "manual"}


class FrontTenants:
    """Four tenants, what is held and waits in them, and the answers about them."""

    session: Json
    users: list[Json]

    def __init__(self) -> None:
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
        self.tenants: dict[str, Json] = {"default": default, "red": red, "blue": blue, "teal": teal}
        self.members: dict[str, dict[str, Json]] = {
            "red": {u: member("red", u, r) for u, r in (("ann", "admin"), ("bob", "member"))},
            "default": {},
            "blue": {},
            "teal": {},
        }
        self.runtimes: dict[str, dict[str, Json]] = {}
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
        self.holders = [
            holding("digits-3", "bob", cpu=3.0, ram=2048),
            holding("notebook of bob", "bob", applier="sp", cpu=0.2, ram=1024),
            holding("app line of bob, replica 0", "bob", cpu=1.0, ram=1024, job=None, app="line", replica=0),
            holding("lstm", "carol", cpu=1.0, ram=4096),
        ]
        self.holdings = {"red": self.holders[:3]}

    def usage(self, name: str) -> Json:
        return {
            "tenant": self.tenants[name],
            "holdings": self.holdings.get(name, []),
            "history": used_over(7 * 24) if name == "red" else [],
            "jobs": {"cpu_hours": 412.25, "gpu_hours": 31.5, "cpu_most": 8, "gpu_most": 2},
        }

    def preview(self, name: str, body: Json) -> Json:
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

    def of_tenants(self, method: str, rest: list[str], body: Json) -> tuple[int, Any]:
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
                return 200, self.usage(name)
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
                self.members[name][user] = member(name, user, body.get("role", "member"))
                left = "is no longer in default" if self.session["admin"] else "stays in default too"
                return 200, {**self.members[name][user], "note": f"{user} {left}"}
            case "DELETE", ["members", user]:
                return 200, self.members[name].pop(user)
        return 200, self.tenants[name]

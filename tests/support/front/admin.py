"""The stand-in service's answers to administrators: the overview, nodes out of service, announcements, imported people."""

from __future__ import annotations

from typing import Any

from support.front.shapes import when

Json = dict[str, Any]
TEAM = ("name", "cpu", "gpu", "ram", "rom", "cpu_inuse", "gpu_inuse", "ram_inuse", "rom_inuse")
SHARES = ("borrowed", "lent", "free", "over", "running", "waiting")


def an_announcement(number: int, text: str, **fields: Any) -> Json:
    """Make an announcement that is shown now."""
    times = {"begin": when(-60), "until": when(7200), "made_at": when(-60)}
    return {"id": number, "tenant": "", "level": "info", "text": text, "made_by": "ann", **times, **fields}


def imported(line: int, name: str, state: str, **fields: Any) -> Json:
    """Make a line of a file of people as it is answered."""
    return {
        "line": line,
        "name": name,
        "team": "red",
        "admin": False,
        "state": state,
        "note": "",
        "password": None,
        **fields,
    }


class AdminFront:
    """Keeps what administrators change, and what they asked for."""

    def __init__(self) -> None:
        self.announcements: list[Json] = []
        self.drained: dict[str, Json] = {}
        self.problems: list[Json] = []
        self.app_troubles: list[Json] = []
        self.imports: list[Json] = []
        self.people = [
            imported(2, "zoe", "new"),
            imported(3, "bob", "there"),
            imported(4, "=cmd", "refused", note="'=cmd' cannot be a user name"),
        ]

    def announced(
        self, method: str, rest: list[str], verb: str, body: Json, tenant: str = ""
    ) -> tuple[int, Any]:
        """Answer about announcements, to all or of a tenant."""
        match method, rest:
            case "GET", []:
                whole = verb == "all" or not tenant
                return 200, [a for a in self.announcements if whole or a["tenant"] == tenant]
            case "POST", []:
                made = an_announcement(len(self.announcements) + 1, **(body | {"tenant": tenant}))
                self.announcements.append(made)
                return 201, made
            case "DELETE", [number]:
                self.announcements = [a for a in self.announcements if str(a["id"]) != number]
        return 200, {}

    def node(self, nodes: list[Json], name: str, verb: str, body: Json) -> tuple[int, Any]:
        """Drain one, return it, or say what a drain would stop."""
        found = next(n for n in nodes if n["name"] == name)
        rest = [c for c in found["conditions"] if c["kind"] != "Drained"]
        if verb == "drain":
            self.drained[name] = {**body, "actor": "ann", "since": when(-5)}
            found["conditions"] = [*rest, {"kind": "Drained", "message": body["reason"]}]
        elif verb == "return":
            self.drained.pop(name, None)
            found["conditions"] = rest
        user = {
            "checkpoint_every": None,
            "ending": False,
            "ranks": 1,
            "of": 1,
            "tenant": "red",
            "user": "bob",
        }
        stops = [
            {**user, "kind": "job", "name": "digits-3", "of": 3, "checkpoint_every": 600},
            {**user, "kind": "server", "name": ""},
        ]
        return 200, {"node": name, "drain": self.drained.get(name), "others": 1, "stops": stops}

    def imports_people(self, body: Json) -> tuple[int, Any]:
        """Say what would become of a file; where it is done, each new line is made."""
        self.imports.append(body)
        people = self.people
        if not body["dry_run"]:
            people = [
                p | {"state": "made", "password": "k3Xp9QzLm2Rt7w"} for p in people if p["state"] == "new"
            ]
        return 200, {"people": people, "done": 1, "refused": 1}

    def overview(self, teams: list[Json], queue: list[Json], nodes: list[Json]) -> Json:
        """Tell how all stands."""
        waiting = [e for e in queue if e["phase"] == "queued"]
        shut = [n for n in nodes if n["conditions"]]
        return {
            "at": when(),
            "teams": [{key: team[key] for key in (*TEAM, *SHARES)} for team in teams],
            "teams_all": len(teams) + 2,
            "running": len(queue) - len(waiting),
            "waiting": len(waiting),
            "suspended": 1,
            "reasons": [
                {"reason": "WaitingForQuota", "count": len(waiting), "message": waiting[0]["message"]}
            ]
            if waiting
            else [],
            "longest": waiting[:5],
            "problems": self.problems,
            "nodes": len(nodes),
            "nodes_up": sum(n["up"] for n in nodes),
            "nodes_open": len(nodes) - len(shut),
            "troubles": [{key: n[key] for key in ("name", "up", "conditions")} for n in shut],
            "servers": 4,
            "servers_waiting": 1,
            "apps": 1,
            "replicas": 2,
            "replicas_waiting": 0,
            "apps_failing": len(self.app_troubles),
            "app_troubles": self.app_troubles,
            "forecasts": {"since": when(-864_000), "before": 31, "inside": 205, "after": 20},
        }

"""The stand-in's requests of teams, requests to join teams, and caps of members."""

from __future__ import annotations

from typing import Any

from support.front.shapes import when

Json = dict[str, Any]
REASON = "the reading of digits for the spring meeting, on all pages of the archive"


def request(tenant: str, **change: Any) -> Json:
    return {
        "id": f"r-{tenant}", "tenant": tenant, "user": "bob", "asked_at": when(-7200), "cpu": 16.0, "gpu": None,
        "ram": 32768, "rom": None, "reason": REASON, "state": "open", "decided_by": None, "decided_at": None,
        "word": "", **change,
    }  # fmt: skip


class FrontTeams:
    """Answers what is asked about them."""

    def __init__(self) -> None:
        self.requests: list[Json] = [
            request("red"),
            request(
                "red",
                id="r-old",
                state="declined",
                decided_by="ann",
                decided_at=when(-9000),
                word="not before May",
            ),
        ]
        self.joins: dict[str, list[Json]] = {
            "red": [{"tenant": "red", "user": "carol", "asked_at": when(-600), "note": "I read digits too"}]
        }
        self.caps: dict[str, list[Json]] = {"red": [{"user": None, "cpu": 4.0, "gpu": None, "jobs": 10}]}
        self.open: list[Json] = [
            {"tenant": "blue", "description": "speech and other sounds", "asked_at": None},
            {"tenant": "teal", "description": "", "asked_at": when(-3600)},
        ]
        self.managed_by = ""
        self.bodies: list[tuple[str, Json]] = []

    def of_user(self, method: str, rest: list[str], body: Json) -> tuple[int, Any]:
        """Answer for a person's teams."""
        if method == "GET":
            return 200, {"teams": [] if self.managed_by else self.open, "managed_by": self.managed_by}
        team = rest[0] if rest else body["tenant"]
        asked = when(0) if method == "POST" else None
        self.open = [{**t, "asked_at": asked} if t["tenant"] == team else t for t in self.open]
        return 201, {"tenant": team, "user": "ann", "asked_at": when(0), "note": body.get("note", "")}

    def of_tenant(self, method: str, name: str, rest: list[str], verb: str, body: Json) -> tuple[int, Any]:
        """Answer for a tenant's requests, joins and caps."""
        self.bodies.append((f"{method} {'/'.join(rest)}:{verb}", body))
        match method, rest, verb:
            case "GET", ["quota_requests"], _:
                return 200, [r for r in self.requests if r["tenant"] == name]
            case "POST", ["quota_requests"], _:
                made = request(name, **{"cpu": None, "ram": None, **body, "id": "r-new"})
                self.requests.insert(0, made)
                return 201, made
            case _, ["quota_requests", uid], _:
                state = {"accept": "accepted", "decline": "declined"}.get(verb, "withdrawn")
                found = next(r for r in self.requests if r["id"] == uid)
                found |= {
                    "state": state,
                    "decided_by": "ann",
                    "decided_at": when(0),
                    "word": body.get("word", ""),
                }
                return 200, found
            case "GET", ["joins"], _:
                return 200, self.joins.get(name, [])
            case _, ["joins", user], _:
                self.joins[name] = [j for j in self.joins.get(name, []) if j["user"] != user]
                return 200, {"tenant": name, "user": user, "asked_at": when(0), "note": ""}
            case "PUT", ["caps"], _:
                others = [c for c in self.caps.get(name, []) if c["user"] != body["user"]]
                self.caps[name] = sorted([*others, body], key=lambda c: c["user"] or "")
                return 200, self.caps[name]
        return 200, self.caps.get(name, [])

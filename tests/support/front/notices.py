"""The stand-in's channels of notices."""

from __future__ import annotations

from typing import Any

from support.front.shapes import when

Json = dict[str, Any]


def channel(name: str, shown: str, **change: Any) -> Json:
    """A way to somebody that works."""
    return {
        "name": name, "kind": "webhook", "shown": shown, "events": ["finished", "failed"], "told_at": when(-900),
        "trouble": None, **change,
    }  # fmt: skip


class FrontNotices:
    """What ann chose; nothing has happened that she is told of."""

    def __init__(self) -> None:
        self.chosen: Json = {
            "browser": ["finished"], "quiet": {"begin": "22:00", "until": "07:00"}, "timezone": "Europe/Berlin",
            "channels": [
                channel("mail", "***@example.org", kind="mail"),
                channel("team", "hooks.example.org", trouble="it answered with status 404"),
            ],
            "mail": True, "services": ["slack"],
        }  # fmt: skip
        self.told: list[Json] = []

    def answer(self, method: str, what: str, verb: str, body: Json) -> tuple[int, Any]:
        """Answer a request for notifications or notices."""
        if what == "notices":
            return 200, self.told
        if verb == "test":
            return 200, {"taken": body["channel"] == "mail", "trouble": "it answers 404 Not Found"}
        if method == "PUT":
            if any(one.get("address", "https").startswith("ftp") for one in body["channels"]):
                return 403, {
                    "reason": "Invalid",
                    "msg": "an address begins with mailto:, https:// or http://",
                }
            known = {one["name"]: one for one in self.chosen["channels"]}
            self.chosen |= body
            self.chosen["channels"] = [
                {**known.get(one["name"], channel(one["name"], "example.net")), "events": one["events"]}
                for one in body["channels"]
            ]
        return 200, self.chosen

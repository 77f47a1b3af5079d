"""Apps as the front end's stand-in service has them: a user's own with their keys and logs, and those of others."""

from __future__ import annotations

from typing import Any

from support.front.shapes import Json, app, when

LINES = ["loaded digits@2", "listens", "POST /v2/models/digits/infer 200"]


def key_of(name: str, **change: Any) -> Json:
    """What is told of a key that is there."""
    return {
        "name": name,
        "made_by": "ann",
        "made_at": when(-600),
        "used_at": when(-60),
        "key": None,
        **change,
    }


def shared(name: str, user: str, **change: Any) -> Json:
    """An app of somebody else's, as who may open it is shown it."""
    return {
        "name": name, "user": user, "tenant": "red", "uid": f"{user}-{name}", "url": f"/services/mlp/apps/{user}/{name}/",
        "address": f"http://hub.test/services/mlp/apps/{user}/{name}/",
        "state": "ready", "phase": "running", "access": "tenant", "serves": "model", "model_name": "digits@1",
        "wanted": 1, "ready": 1, "message": "", "detail": {}, "created_at": when(-900), **change,
    }  # fmt: skip


class FrontApps:
    """The apps of ann, `own`, and those that others share with her."""

    def __init__(self) -> None:
        crash = {"state": "error", "phase": "error", "message": "a replica ended: rank 0 failed"}
        tail = "ModelError: no model that can be served is in it, but notes.txt"
        self.own = [
            app("digits-app"),
            app("notes", **crash, ready=0, running=[], tail=tail),
            app("board", model_name="", command="python -m http.server", access="hub"),
        ]
        self.others = [shared("line", "bob"), shared("plots", "carol", serves="command", access="hub")]
        self.keys = [key_of("builds"), key_of("nightly", used_at=None)]
        self.deployed: list[Json] = []

    def answer(self, method: str, parts: list[str], verb: str, body: Json) -> tuple[int, Any]:
        """Answer what is asked below `/users/{user}/apps`."""
        _, user, _, *rest = parts
        match method, rest, verb:
            case "GET", [], "":
                return 200, [a for a in self.own if a["user"] == user]
            case "GET", [], "shared":
                return 200, self.others
            case "POST", [], "":
                return self._deploy(body)
            case "GET", [name], "shared":
                return self._found(self.others, user, name)
            case "GET", [name], "":
                return self._found(self.own, user, name)
            case "DELETE", [name], "":
                return self._found(self.own, user, name)
            case _, [name, what, *more], "" if any(a["name"] == name for a in self.own):
                return self._of(method, name, [what, *more], body)
        return 403, {"msg": "this app does not exist", "reason": "NotFound"}

    def _of(self, method: str, name: str, rest: list[str], body: Json) -> tuple[int, Any]:
        match method, rest:
            case "GET", ["keys"]:
                return 200, self.keys
            case "POST", ["keys"]:
                self.keys.append(key_of(body["name"], used_at=None))
                return 201, {**self.keys[-1], "key": "mlpk_shown-this-once"}
            case "DELETE", ["keys", key]:
                self.keys = [one for one in self.keys if one["name"] != key]
                return 200, ""
            case "PUT", ["access"]:
                next(a for a in self.own if a["name"] == name)["access"] = body["access"]
                return 200, {"access": body["access"]}
            case "GET", ["logs"]:
                lines = [
                    {"rank": 0, "time": when(-5), "stream": "stdout", "text": text, "partial": False}
                    for text in LINES
                ]
                return 200, {"rank": 0, "lines": lines, "offset": 9, "dropped": 0}
            case "GET", ["usage"]:
                bounds = [1, 5, 10]
                return 200, {
                    "since": when(-900), "requests": 12, "errors": 1, "bytes_in": 4000, "bytes_out": 9000, "open": 0, "last": when(-5),
                    "bounds_ms": bounds, "latency": [2, 9, 1, 0], "p50_ms": 5, "p99_ms": 10,
                    "minutes": [{"time": when(-60), "requests": 12, "errors": 1, "bytes_in": 4000, "bytes_out": 9000}],
                }  # fmt: skip
        return 403, {"msg": "an app has no such thing", "reason": "NotFound"}

    def _deploy(self, body: Json) -> tuple[int, Any]:
        self.deployed.append(body)
        there = any(a["name"] == body["name"] for a in self.own)
        if there and not body["replace"]:
            return 403, {"msg": f"an app {body['name']} already exists", "reason": "Conflict"}
        if not there:
            self.own.append(app(body["name"], model_name=body["model_name"]))
        return 201, app(body["name"], model_name=body["model_name"])

    @staticmethod
    def _found(among: list[Json], user: str, name: str) -> tuple[int, Any]:
        for found in among:
            if (found["user"], found["name"]) == (user, name):
                return 200, found
        return 403, {"msg": f"app {name} does not exist", "reason": "NotFound"}

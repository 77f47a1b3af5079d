"""Options of apps, and what the words after `apps` may be."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mlp.errors import UsageError
from mlp.grammar.job_options import BY_NAME, Option, duration, name, ram
from mlp.grammar.query_options import TAIL
from mlp.language import say
from mlp.rendering import words

Json = dict[str, Any]
ACCESS = ("private", "tenant", "hub")
APP_NAME = re.compile(r"[a-z]([a-z0-9-]{0,48}[a-z0-9])?")
MOST_REPLICAS = 100
MOST_REQUESTS = 1000


def app_name(text: object) -> str:
    """Check an app's name."""
    if not isinstance(text, str) or not APP_NAME.fullmatch(text):
        raise ValueError(say("is not a name; use a-z first, then a-z, 0-9 and -, at most 50 characters"))
    return text


def replicas(text: object) -> int | str:
    """Parse a number of replicas, or MIN:MAX."""
    found = re.fullmatch(r"(\d{1,3})(?::(\d{1,3}))?", str(text).strip())
    if not found:
        raise ValueError(say("is not a number of replicas; write 2, or 0:2 to sleep while no requests come"))
    low, high = int(found[1]), int(found[2] or found[1])
    if not (low <= high and 1 <= high <= MOST_REPLICAS):
        raise ValueError(
            say("must be from 1 to {most}, and MIN must not be above MAX", most=f"{MOST_REPLICAS:,}")
        )
    return low if low == high else f"{low}:{high}"


def _requests(text: object) -> int:
    if not str(text).isdecimal() or not 1 <= int(str(text)) <= MOST_REQUESTS:
        raise ValueError(say("must be a whole number from 1 to {most}", most=f"{MOST_REQUESTS:,}"))
    return int(str(text))


def _port(text: object) -> int:
    if not str(text).isdecimal() or not 1024 <= int(str(text)) <= 65_535:
        raise ValueError(say("is not a port; write a number from 1024 to 65535"))
    return int(str(text))


def _version(text: object) -> int:
    if not str(text).isdecimal() or not int(str(text)):
        raise ValueError(say("is not a version; write a whole number from 1 on"))
    return int(str(text))


def _line(text: object) -> str:
    if not isinstance(text, str) or not text.strip():
        raise ValueError(say("is empty; give the command to run"))
    return text


def _access(text: object) -> str:
    if text not in ACCESS:
        raise ValueError(say("is not one of {choices}", choices=", ".join(ACCESS)))
    return str(text)


_EACH = {
    "cpu": lambda: say("cores per replica"),
    "gpu": lambda: say("devices per replica"),
    "ram": lambda: say("memory per replica"),
}
SIZE = tuple(
    replace(BY_NAME[key], help=told, parse=ram, metavar="MIB")
    if key == "ram"
    else replace(BY_NAME[key], help=told)
    for key, told in _EACH.items()
)
DEPLOY: tuple[Option, ...] = (
    Option("name", lambda: say("name of the app"), app_name, None, "NAME", "-n", shown_default=lambda: say("the model's name")),
    Option("version", lambda: say("which version of the model"), _version, None, "N", wire=False, shown_default=lambda: say("the latest")),
    *SIZE,
    BY_NAME["gpu_kind"],
    Option("replicas", lambda: say("number of replicas; with MIN:MAX as many as are needed"), replicas, 1, "N|MIN:MAX"),
    Option("concurrency", lambda: say("requests at once per replica, with MIN:MAX"), _requests, 8, "N"),
    Option("idle", lambda: say("time after which unneeded replicas end, with MIN:MAX"), duration, 900, "15m|1h", shown_default=lambda: "15m"),
    replace(BY_NAME["tenant"], help=lambda: say("team whose quota it uses, or whose apps are listed")),
    Option("command", lambda: say("command that runs instead of the platform's server; it finds the model at /model and listens on PORT"), _line, None, "LINE"),
    Option("port", lambda: say("port on which the command listens"), _port, 8080, "N", wire=False),
    Option("runtime", lambda: say("plain, or one of your team's with one process"), name, None, "NAME", "-r", "runtimes", shown_default=lambda: "plain"),
    replace(BY_NAME["env_name"], help=lambda: say("an environment of the team, whose packages the server or the command has")),
    BY_NAME["priority"],
    Option("access", lambda: say("users who may send requests to it, in addition to you and its keys"), _access, "tenant", "WHO", choices=" ".join(ACCESS)),
    BY_NAME["env"],
    Option("replace", lambda: say("change the app of this name; the old one ends after the new one answers"), None, False),
)  # fmt: skip
LAST_LINES = replace(TAIL, help=lambda: say("only the last lines (logs)"))
PREVIOUS = Option(
    "previous", lambda: say("the last lines of the replica that failed last (logs)"), None, False
)  # fmt: skip
OPTIONS = (*DEPLOY, LAST_LINES, PREVIOUS)
_OF_LS = {"tenant"}
_OF_SCALE = {"idle", "concurrency"}


def right_call(names: Sequence[str], given: Mapping[str, Any]) -> bool:
    """Tell whether the act of `apps` has the options that are given."""
    act, count = names[0] if names else "ls", len(names) - 1
    options: dict[str, set[str]] = {
        "ls": _OF_LS,
        "show": set(),
        "deploy": {o.name for o in DEPLOY},
        "logs": {"tail", "previous"},
        "scale": _OF_SCALE,
        "keys": set(),
        "access": set(),
        "rm": set(),
    }
    if act == "keys" and count == 2 and names[2] in {"create", "revoke"}:
        raise UsageError(
            say(
                "which key? Give a name that shows who uses it. Usage: {line}",
                line=words.command(f"apps keys {names[1]} {names[2]} KEY"),
            )
        )
    if act == "logs" and count > 1 and "previous" in given:
        return False
    return given.keys() <= options.get(act, set()) | {"json"} and (
        act != "access" or count < 2 or names[2] in ACCESS
    )


def wanted(model: str, given: Mapping[str, Any]) -> Json:
    """Return what is sent to deploy a model, or a command."""
    plain, at, number = model.partition("@")
    version = given.get("version") or (number if at else None)
    asked: Json = {
        o.name: given[o.name] for o in DEPLOY if o.wire and o.name in given and given[o.name] is not None
    }
    asked["name"] = given.get("name") or plain
    asked["model_name"] = f"{plain}@{version}" if version else plain
    if "port" in given:
        asked["command_port"] = given["port"]
    return asked

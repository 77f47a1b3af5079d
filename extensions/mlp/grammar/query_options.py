"""Options of the verbs that do not start anything: which of a list are meant, how much is shown, whose it is."""

from __future__ import annotations

import difflib
import re
from dataclasses import replace

from mlp import terms
from mlp.grammar import notice_options
from mlp.grammar.job_options import Option, duration, name, word
from mlp.language import say
from mlp.rendering.words import SCOPE_PREFIX

MODES = ("copy", "read-through")
KEEP_HOURS, MOST_HOURS = 4, 24


def _count(text: object) -> int:
    if not str(text).isdecimal():
        raise ValueError(say("is not a whole number"))
    return int(str(text))


def _some(text: object) -> int:
    if _count(text) < 1:
        raise ValueError(say("must be at least 1"))
    return _count(text)


def _hours(text: object) -> int:
    if not 1 <= _count(text) <= MOST_HOURS:
        raise ValueError(say("is not a number of hours from 1 to {most}", most=MOST_HOURS))
    return _count(text)


def _mode(text: object) -> str:
    if text not in MODES:
        raise ValueError(
            say("is not a way to use a source; choose one of {choices}", choices=" or ".join(MODES))
        )
    return str(text)


def scopes(text: object) -> tuple[str, ...]:
    """Check the scopes of a token; the hub knows the existing ones."""
    found = tuple(text) if isinstance(text, list) else (str(text),)
    if any(not re.fullmatch(r"[a-z]+:[a-z]+", one) for one in found):
        raise ValueError(say("is not a scope; write jobs:read, jobs:write or tenants:read"))
    return tuple(SCOPE_PREFIX + one for one in found)


STATES = (
    "creating running finished error deleting queued admitted starting suspending suspended preempting resizing finishing "
    "failed cancelling cancelled"
)
"""States, then those phases that are not named like one."""


def _state(text: object) -> str:
    if str(text) not in STATES.split():
        near = difflib.get_close_matches(str(text), STATES.split(), 1)
        args = {"states": ", ".join(STATES.split()), "near": "".join(near)}
        raise ValueError(
            say("is not a state; did you mean {near}? States: {states}", **args)
            if near
            else say("is not a state; choose one of {states}", **args)
        )
    return str(text)


def _grace(text: object) -> int:
    return 0 if str(text).strip() in ("0", "0s") else duration(text)


def _path(text: object) -> str:
    if not str(text).strip():
        raise ValueError(say("is not a file"))
    return str(text)


STATE = Option(
    "state", lambda: say("only those in this state or phase"), _state, None, "STATE", choices=STATES
)
TENANT = Option("tenant", lambda: say("only those of this team"), name, None, "NAME", "-t", "tenants")
OF_USER = Option(
    "user", lambda: say("owner of the job, for admins of the owner's team"), word(255), None, "NAME"
)
HOURS = Option("hours", lambda: say("hours from now on"), _hours, KEEP_HOURS, "N")
RANK = Option("rank", lambda: say("only this rank"), _count, None, "R")
TAIL = Option("tail", lambda: say("only the last N lines of each rank"), _some, None, "N")
FOLLOW = Option("follow", lambda: say("continue until the job ends"), None, False, short="-f")
JSON = Option("json", lambda: say("print JSON"), None, False)
TOKEN_STDIN = Option("token_stdin", lambda: say("read the token from standard input"), None, False)
NO_BROWSER = Option("no_browser", lambda: say("show the address, and ask for the code"), None, False)
EXPIRES = Option(
    "expires",
    lambda: say("time for which the token is valid"),
    duration,
    None,
    "7d|90d",
    shown_default=lambda: "30d",
)
ANY_FILES = Option(
    "any_files", lambda: say("keep the files even if they are not a known model (register)"), None, False
)
ALL_VERSIONS = Option("all", lambda: say("all versions of these models (rm)"), None, False)
OF_MODELS = Option(
    "tenant",
    lambda: say("team of the listed models, or of the registered one"),
    name,
    None,
    "NAME",
    "-t",
    "tenants",
)
OF_DATASET = Option(
    "tenant",
    lambda: say("team whose storage a new dataset uses (push, add)"),
    name,
    None,
    "NAME",
    "-t",
    "tenants",
)
ENDPOINT = Option(
    "endpoint", lambda: say("where the object store is (add)"), word(300), None, "URL",
    shown_default=lambda: say("Amazon's"),
)  # fmt: skip
REGION = Option("region", lambda: say("the region of the object store (add)"), word(40), None, "NAME")
MODE = Option(
    "mode", lambda: say("copy: the platform copies all files; read-through: only the files that jobs need (add)"), _mode, "copy", "MODE",
    choices=" ".join(MODES),
)  # fmt: skip
OF_SECRET = Option(
    "secret",
    lambda: say("the secret that opens it, yours or your team's (add)"),
    name,
    None,
    "NAME",
    shown_default=lambda: say("it is open to everybody"),
)
TENANT_SECRET = Option(
    "tenant",
    lambda: say("for all members of this team, which you administer"),
    name,
    None,
    "NAME",
    "-t",
    "tenants",
)
OF_ENVIRONMENTS = Option(
    "tenant", lambda: say("the team of the environments"), name, None, "NAME", "-t", "tenants",
    shown_default=lambda: say("yours"),
)  # fmt: skip
REQUIREMENTS = Option(
    "file",
    lambda: say("a file that names its packages, one per line, such as pandas>=2.2 (create)"),
    _path,
    None,
    "requirements.txt",
    "-f",
)
IMAGE = Option(
    "image",
    lambda: say("the image of the environment, where jobs are pods of Kubernetes (create)"),
    word(500),
    None,
    "REGISTRY/NAME:TAG",
)
OF_SWEEPS = replace(TENANT, help=lambda: say("only those of this team (ls)"))
NOTICE_EVENTS = Option(
    "events",
    lambda: say("events of the notifications: {events} (set)", events=",".join(terms.NOTICE_EVENTS)),
    notice_options.events,
    None,
    "A,B",
    shown_default=lambda: ",".join(notice_options.USUAL),
)
ZONE = Option(
    "timezone", lambda: say("your time zone, such as Europe/Berlin (quiet)"), word(64), None, "ZONE"
)
STAGES = ("none", "staging", "production", "archived")
SERVICE = Option(
    "service",
    lambda: say("tokens of a team's program, such as a nightly build, instead of yours"),
    name,
    None,
    "NAME",
)
OF_TENANT = Option(
    "tenant", lambda: say("team of the programs that have the tokens"), name, None, "NAME", "-t", "tenants"
)
GRACE = Option(
    "grace", lambda: say("time for which earlier tokens stay valid (rotate)"), _grace, None, "0|1h|7d",
    shown_default=lambda: "1d",
)  # fmt: skip
SCOPE = Option(
    "scope",
    lambda: say("scope of the token, such as jobs:read; may be repeated"),
    scopes,
    None,
    "SCOPE",
    many=True,
    shown_default=lambda: say("the scopes of your own token"),
)


def _by(text: object) -> str:
    if text not in {"step", "epoch", "time"}:
        raise ValueError(say("is not an axis; choose one of {choices}", choices="step, epoch, time"))
    return str(text)


SORT = Option(
    "sort", lambda: say("the column to sort by, - before it for the highest first"), str, None, "COLUMN",
    shown_default=lambda: "-submitted",
)  # fmt: skip
CSV = Option("csv", lambda: say("write them as CSV"), None, False)
WIDE = Option("wide", lambda: say("all columns, also on a narrow terminal"), None, False)
OF_RUNS = Option(
    "tenant",
    lambda: say("all members' runs, of a team that you administer"),
    name,
    None,
    "NAME",
    "-t",
    "tenants",
)
BY = Option("by", lambda: say("x axis of the curves"), _by, "step", "AXIS", choices="step epoch time")
LEVEL = Option(
    "level",
    lambda: say("importance of the announcement"),
    notice_options.level,
    "info",
    "LEVEL",
    choices="info warning critical",
)
LASTS = Option(
    "lasts", lambda: say("how long it is shown"), duration, None, "8h|7d", shown_default=lambda: "1d"
)
ANNOUNCED_TO = Option(
    "tenant",
    lambda: say("to the members of this team, which you administer"),
    name,
    None,
    "NAME",
    "-t",
    "tenants",
    shown_default=lambda: say("everybody"),
)
METRIC = Option(
    "metric", lambda: say("only this metric"), str, None, "NAME", shown_default=lambda: say("all")
)

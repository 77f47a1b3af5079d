"""The table of verbs: the same for the magic and the command."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass

from mlp.errors import UsageError
from mlp.grammar import elsewhere
from mlp.grammar.alert_options import ALERTS
from mlp.grammar.app_options import OPTIONS as OF_APPS
from mlp.grammar.job_options import (
    AGAIN,
    OFFER,
    SUBMIT,
    UPDATE,
    WITH,
    Option,
)
from mlp.grammar.query_options import (
    ALL_VERSIONS,
    ANNOUNCED_TO,
    ANY_FILES,
    BY,
    CSV,
    ENDPOINT,
    EXPIRES,
    FOLLOW,
    GRACE,
    HOURS,
    IMAGE,
    JSON,
    LASTS,
    LEVEL,
    METRIC,
    MODE,
    NO_BROWSER,
    NOTICE_EVENTS,
    OF_DATASET,
    OF_ENVIRONMENTS,
    OF_MODELS,
    OF_RUNS,
    OF_SECRET,
    OF_SWEEPS,
    OF_TENANT,
    OF_USER,
    RANK,
    REGION,
    REQUIREMENTS,
    SCOPE,
    SERVICE,
    SORT,
    STAGES,
    STATE,
    TAIL,
    TENANT,
    TENANT_SECRET,
    TOKEN_STDIN,
    WIDE,
    ZONE,
)
from mlp.grammar.sweep_options import EXTEND, SWEEP
from mlp.grammar.team_options import TEAM
from mlp.grammar.usage_options import USAGE
from mlp.language import say
from mlp.rendering.words import sentences

MAGIC, COMMAND = "%mlp", "mlp"


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb: `takes` is the kind of its words, a key of `TAKES`."""

    name: str
    help: Callable[[], str]
    takes: str = ""
    options: tuple[Option, ...] = ()
    surfaces: frozenset[str] = frozenset({MAGIC, COMMAND})


_COMMAND_ONLY = frozenset({COMMAND})
VERBS: tuple[Verb, ...] = (
    Verb("submit", lambda: say("run a cell or a script as a job"), "script", (*SUBMIT, WITH)),
    Verb(
        "sweep",
        lambda: say("run a cell or a script with many parameters, or show such a sweep"),
        "sweep",
        (*SWEEP, WITH),
    ),
    Verb(
        "sweeps", lambda: say("list, show, cancel, extend and remove sweeps"), "sweeps", (OF_SWEEPS, *EXTEND)
    ),
    Verb("jobs", lambda: say("list your jobs"), "", (STATE, TENANT, WIDE)),
    Verb("job", lambda: say("show one job as it is now"), "job"),
    Verb("watch", lambda: say("follow a job, from its beginning"), "job"),
    Verb("logs", lambda: say("show the output of ranks"), "job", (RANK, TAIL, FOLLOW)),
    Verb("files", lambda: say("list the files that a job has written"), "files"),
    Verb("get", lambda: say("fetch files of a job, a directory with all below"), "file"),
    Verb("why", lambda: say("why a job waits, and until when"), "job"),
    Verb("cancel", lambda: say("stop jobs for good"), "jobs", (STATE, TENANT)),
    Verb("suspend", lambda: say("stop jobs for now, and give back their resources"), "jobs", (STATE, TENANT)),
    Verb("resume", lambda: say("queue suspended jobs again"), "jobs", (STATE, TENANT)),
    Verb(
        "resubmit",
        lambda: say("run jobs again, exactly or with changes"),
        "jobs",
        (STATE, TENANT, *AGAIN),
    ),
    Verb(
        "update",
        lambda: say("change priority or time limit of a job that has not ended"),
        "job",
        (*UPDATE, OF_USER),
    ),
    Verb(
        "keep",
        lambda: say("keep a job whose unused GPUs its team would take back soon"),
        "job",
        (HOURS, OF_USER),
    ),
    Verb("note", lambda: say("attach a note to a job, or remove it"), "note"),
    Verb("delete", lambda: say("remove ended jobs with their files"), "jobs", (STATE, TENANT)),
    Verb(
        "models",
        lambda: say("list, register, stage, fetch and remove models"),
        "model",
        (ANY_FILES, OF_MODELS, ALL_VERSIONS),
    ),
    Verb("runs", lambda: say("search your runs, write notes and tags"), "runs", (SORT, OF_RUNS, CSV, WIDE)),
    Verb("compare", lambda: say("compare runs side by side"), "several", (BY, METRIC)),
    Verb(
        "data",
        lambda: say("list datasets, push and pull their files, copy object stores, remove them"),
        "data",
        (OF_DATASET, ENDPOINT, REGION, OF_SECRET, MODE),
    ),
    Verb(
        "env",
        lambda: say("list, create, show and delete environments of packages"),
        "env",
        (REQUIREMENTS, IMAGE, OF_ENVIRONMENTS),
    ),
    Verb("apps", lambda: say("list, deploy, scale and remove apps"), "app", OF_APPS),
    Verb(
        "team",
        lambda: say("ask to join teams and for more quota, and answer such requests"),
        "team",
        TEAM,
        _COMMAND_ONLY,
    ),
    Verb("usage", lambda: say("what your work held and used, and its cost"), "", USAGE),
    Verb("quota", lambda: say("the quota of your teams and its current users")),
    Verb("runtimes", lambda: say("list the runtimes that your jobs may use")),
    Verb("offer", lambda: say("show the expected start and resources of a job of this shape"), "", OFFER),
    Verb("language", lambda: say("show or choose the language of all texts"), "language"),
    Verb(
        "login",
        lambda: say("log in on this machine with a browser"),
        "url",
        (NO_BROWSER, EXPIRES, TOKEN_STDIN),
        _COMMAND_ONLY,
    ),
    Verb("logout", lambda: say("end the token of this machine"), "url", (), _COMMAND_ONLY),
    Verb("whoami", lambda: say("show your user name and the hub"), "", (), _COMMAND_ONLY),
    Verb(
        "token",
        lambda: say("list, make and end your tokens"),
        "token",
        (EXPIRES, SCOPE, SERVICE, OF_TENANT, GRACE),
        _COMMAND_ONLY,
    ),
    Verb(
        "secret",
        lambda: say("list, set and remove secrets, which open object stores"),
        "secret",
        (TENANT_SECRET,),
        _COMMAND_ONLY,
    ),
    Verb(
        "notify",
        lambda: say("choose where you are notified of your jobs"),
        "notify",
        (NOTICE_EVENTS, ZONE),
        _COMMAND_ONLY,
    ),
    Verb(
        "announce",
        lambda: say("show announcements; announce something to a team, or to everybody"),
        "announce",
        (LEVEL, LASTS, ANNOUNCED_TO),
    ),
    Verb(
        "alerts",
        lambda: say("show alerts of your team or of the hub; silence them for a while"),
        "alerts",
        ALERTS,
    ),
    Verb("completion", lambda: say("print the completion script for a shell"), "shell", (), _COMMAND_ONLY),
)
AUTO = "auto"


def languages() -> tuple[str, ...]:
    """Return what may be chosen: a language, or to leave it to browser and terminal."""
    from mlp_language.catalogue import LANGUAGES  # noqa: PLC0415 - who submits needs none

    return (*LANGUAGES, AUTO)


TAKES: dict[str, Callable[[], str]] = {
    "script": lambda: say("[SCRIPT] [options] [-- ARGUMENTS]"),
    "sweep": lambda: say("[SCRIPT] --grid NAME=V,V|--search NAME=SPACE [options] [-- ARGUMENTS] | NAME"),
    "sweeps": lambda: say("[ls] | show NAME | trials NAME | cancel NAME... | extend NAME | rm NAME..."),
    "job": lambda: say("NAME (its latest run) or NAME@RUN"),
    "jobs": lambda: say("NAME... (names, NAME@RUN, patterns like digits-* or digits@*, or a filter)"),
    "files": lambda: say("NAME [DIRECTORY]"),
    "file": lambda: say("NAME PATH [TO]"),
    "note": lambda: say('NAME TEXT ("" removes the note; -- before a text that begins with -)'),
    "url": lambda: "[URL]",
    "team": lambda: say(
        "[ls] | join TEAM | unjoin TEAM | ask TEAM --reason TEXT --cpu N ... | requests TEAM | withdraw TEAM ID | caps TEAM | cap TEAM [--user NAME] [--cpu N] [--jobs N] | joins TEAM | "
        "approve TEAM USER... | decline TEAM USER..."
    ),
    "secret": lambda: say("[ls] | set NAME [KEY...] | rm NAME..."),
    "notify": lambda: say("[ls] | set NAME [ADDRESS] | rm NAME... | test NAME | quiet 22:00-07:00|off"),
    "announce": lambda: say("[ls] | TEXT | rm ID..."),
    "alerts": lambda: say("[ls] | silence [RULE] | end ID..."),
    "token": lambda: say("list | create NAME | revoke ID... | rotate SERVICE"),
    "model": lambda: say(
        "[ls [NAME]] | show NAME | register NAME SOURCE | stage NAME {stages} | get NAME [TO] | rm NAME... [--all]",
        stages="|".join(STAGES),
    ),
    "runs": lambda: say(
        "[lr<0.1 tag=best WORD ...] | show NAME | note NAME TEXT | tag NAME TAG... | untag NAME TAG..."
    ),
    "several": lambda: say("NAME NAME... (names or NAME@RUN)"),
    "data": lambda: say(
        "[ls [NAME[:PATH]]] | push FROM [NAME[:PATH]] | pull NAME[:PATH] [TO] | add s3://BUCKET/PREFIX NAME | sync NAME | "
        "rm NAME[:PATH]..."
    ),
    "env": lambda: say(
        "[list] | create NAME -f requirements.txt | create NAME --image IMAGE | show NAME | delete NAME..."
    ),
    "app": lambda: say(
        "[ls] | show NAME|USER/NAME | deploy MODEL | logs NAME [REPLICA] | logs NAME --previous | scale NAME N|MIN:MAX | "
        "access NAME WHO | keys NAME [create|revoke KEY] | rm NAME..."
    ),
    "language": lambda: f"[{'|'.join(languages())}]",
    "shell": lambda: "bash|zsh|fish",
    "": lambda: "",
}
"""Rest of a line after the verb, by its kind of arguments; the acts of a verb, and their words, are read from it."""


def options_of(verb: Verb, surface: str) -> tuple[Option, ...]:
    """Return what the verb takes on a surface; variables are a notebook's, `--json` the command's."""
    if surface == MAGIC:
        return verb.options
    return (*(o for o in verb.options if o is not WITH), JSON)


def verbs_of(surface: str) -> tuple[Verb, ...]:
    """Return the verbs of a surface."""
    return tuple(v for v in VERBS if surface in v.surfaces)


def find(word: str, surface: str) -> Verb:
    """Find a verb; raises `UsageError` with the nearest one."""
    known = {v.name: v for v in verbs_of(surface)}
    if word in known:
        return known[word]
    near = difflib.get_close_matches(word, known, 1)
    hint = elsewhere.verb_hint(word, surface, known) or (
        say("Did you mean {near}?", near=near[0])
        if near
        else say("Available: {names}.", names=", ".join(known))
    )
    raise UsageError(
        sentences(say("the command {command} does not exist.", command=f"{surface} {word}"), hint)
    )

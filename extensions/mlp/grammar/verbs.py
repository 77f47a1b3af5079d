"""The table of verbs, and how a line of words becomes a call: the same for the magic and the command."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlp.errors import UsageError
from mlp.grammar import elsewhere, forms, notice_options
from mlp.grammar.alert_options import ALERTS, right_alerts_call
from mlp.grammar.app_options import OPTIONS as OF_APPS
from mlp.grammar.app_options import right_call as right_app_call
from mlp.grammar.job_options import (
    AGAIN,
    OFFER,
    SUBMIT,
    UPDATE,
    WITH,
    Option,
    duration,
    part_of_ram,
    ram,
    ram_or_auto,
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
    ZONE,
)
from mlp.grammar.sweep_options import EXTEND, SWEEP
from mlp.grammar.sweep_options import right_call as right_sweep_call
from mlp.grammar.team_options import TEAM
from mlp.grammar.team_options import right_call as right_team_call
from mlp.grammar.usage_options import USAGE
from mlp.language import say
from mlp.rendering.words import command, sentences

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
    Verb("jobs", lambda: say("list your jobs"), "", (STATE, TENANT)),
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
    Verb("delete", lambda: say("remove ended jobs with their files"), "jobs", (STATE, TENANT)),
    Verb(
        "models",
        lambda: say("list, register, stage, fetch and remove models"),
        "model",
        (ANY_FILES, OF_MODELS, ALL_VERSIONS),
    ),
    Verb("runs", lambda: say("search your runs, write notes and tags"), "runs", (SORT, OF_RUNS, CSV)),
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


def examples(surface: str) -> tuple[str, ...]:
    """Return how one begins on a surface."""
    if surface == COMMAND:
        return (
            "mlp submit train.py --workers 2 --name digits -- --epochs 5",
            "mlp watch digits",
            "mlp jobs --state running --json",
        )
    lines = (
        (
            "%%mlp submit --runtime mpi --workers 2 --cpu 0.4 --name digits",
            say("the cell is the program of one rank"),
        ),
        ("%mlp submit train.py --workers 2 -- --epochs 5", say("a script, its arguments after --")),
        ("%mlp watch digits", say("live, from its beginning")),
    )
    widest = max(len(line) for line, _ in lines)
    return tuple(f"{line:<{widest}}  {what}" for line, what in lines)


@dataclass(slots=True)
class ParsedLine:
    """A parsed line."""

    verb: Verb
    names: list[str] = field(default_factory=list)
    rest: list[str] = field(default_factory=list)
    given: dict[str, Any] = field(default_factory=dict)


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


def parse(words: Sequence[str], surface: str) -> ParsedLine:
    """Parse verb, options and names; raises `UsageError` naming what is wrong and what is right."""
    verb = find(words[0], surface)
    call = ParsedLine(verb)
    known = {flag: o for o in options_of(verb, surface) for flag in o.flags}
    collected: dict[str, list[str]] = {}
    left = list(words[1:])
    while left:
        word = left.pop(0)
        if word == "--":
            call.rest = left
            break
        if not word.startswith("-") or word == "-":
            _take_name(word, left, call, surface)
            continue
        flag, equals, value = word.partition("=")
        option = known.get(flag) or _unknown(flag, verb, surface, known)
        if option.parse is None:
            if equals:
                raise UsageError(say("{option} takes no value", option=flag))
            call.given[option.name] = True
            continue
        if not equals:
            if not left or left[0] in known or left[0] == "--":
                raise UsageError(
                    say("{option} needs a value: {right}", option=flag, right=f"{flag} {option.metavar}")
                )
            value = left.pop(0)
            _check_short_name(flag, value, known)
            if (
                left
                and option.parse in {duration, ram, ram_or_auto, part_of_ram}
                and _in_two(option, value, left[0])
            ):
                raise UsageError(
                    say(
                        "{given}: write it as one word: {right}",
                        given=f"{flag} {value} {left[0]}",
                        right=f"{flag} {value}{left[0][0]}",
                    )
                )
        collected.setdefault(option.name, []).append(value)
    for key, values in collected.items():
        option = next(o for o in known.values() if o.name == key)
        call.given[key] = option.value(values if option.many else values[-1])
    _check_names(call, surface)
    return call


def _check_short_name(flag: str, value: str, known: Mapping[str, Option]) -> None:
    """Refuse `-n 4`, which is a number of ranks elsewhere and a name here."""
    if flag != "-n" or not value.isdecimal():
        return
    raise UsageError(
        say(
            "-n {n} would name it {n}: did you mean --workers {n}? A name that is a number is written --name {n}",
            n=value,
        )
        if "--workers" in known
        else say("-n {n} would name it {n}; a name that is a number is written --name {n}", n=value)
    )


def _take_name(word: str, after: Sequence[str], call: ParsedLine, surface: str) -> None:
    """Take a name, or a script; the words after it say what was meant by one that is a command."""
    if not call.names:
        _check_program((word, *after), call, surface)
    call.names.append(word)


def _check_program(words: Sequence[str], call: ParsedLine, surface: str) -> None:
    """Refuse a whole command, such as `python train.py`, where a script is meant."""
    if call.verb.takes not in {"script", "sweep"}:
        return
    if hint := elsewhere.program_hint(words, f"{surface} {call.verb.name}"):
        raise UsageError(hint)


def script_after_hyphens(call: ParsedLine) -> None:
    """Use the first word after `--` as the script if none is before it, as in `mlp submit -- -x.py`."""
    if call.verb.takes == "script" and not call.names and call.rest:
        call.names.append(call.rest.pop(0))


def _in_two(option: Option, number: str, unit: str) -> bool:
    """Tell whether a number and the word after it are one amount, as in `5 minutes`."""
    try:
        option.value(f"{number} {unit}")
    except UsageError:
        return False
    return number.replace(".", "", 1).isdecimal() and unit.isalpha()


def _unknown(flag: str, verb: Verb, surface: str, known: dict[str, Option]) -> Option:
    # a far hint is worse than none: what people mistype is near, and all begin with hyphens
    near = difflib.get_close_matches(flag, known, 1, cutoff=0.75)
    has = ", ".join(f for f in known if f.startswith("--"))
    if other := elsewhere.option_hint(flag, known):
        said = say("{command} has no option {option}.", command=f"{surface} {verb.name}", option=flag)
        raise UsageError(sentences(said, other))
    if near:
        hint = say("Did you mean {near}?", near=near[0])
    else:
        hint = say("It has: {options}.", options=has) if has else say("It has no options.")
    if verb.takes in {"script", "sweep"}:
        hint = sentences(hint, say("Arguments of the script itself go after --"))
    said = say("{command} has no option {option}.", command=f"{surface} {verb.name}", option=flag)
    raise UsageError(sentences(said, hint))


def _check_names(call: ParsedLine, surface: str) -> None:
    verb, count = call.verb, len(call.names)
    line = f"{surface} {verb.name} {TAKES[verb.takes]()}".rstrip()
    if call.rest and verb.takes not in {"script", "sweep"}:
        raise UsageError(say("nothing may follow -- here. Usage: {line}", line=line))
    if verb.takes in {"script", "sweep"}:
        _check_script(call, surface)
    if verb.takes == "job" and count != 1:
        raise UsageError(say("one job is needed. Usage: {line}", line=line))
    _check_acts(call, line)
    if verb.takes == "several" and count < 2:
        raise UsageError(say("which runs? Usage: {line}", line=line))
    if verb.takes in {"files", "file"} and not 1 <= count - (verb.takes == "file") <= 2:
        raise UsageError(say("which files of which job? Usage: {line}", line=line))
    if verb.takes == "jobs" and not count and not call.given.keys() & {"state", "tenant"}:
        raise UsageError(say("which jobs? Usage: {line}", line=line))
    if (not verb.takes and count) or (verb.takes in {"url", "shell", "language"} and count > 1):
        raise UsageError(
            say("{what} is one argument too many. Usage: {line}", what=call.names[-1], line=line)
        )
    if verb.takes == "language" and count and call.names[0] not in languages():
        raise UsageError(say("{what} is not a language here. Usage: {line}", what=call.names[0], line=line))
    if verb.takes == "shell" and not count:
        raise UsageError(say("which shell? Usage: {line}", line=line))


def _check_script(call: ParsedLine, surface: str) -> None:
    if not call.names:
        _check_program(call.rest, call, surface)
    if len(call.names) > 1:
        raise UsageError(
            say(
                "{second}: arguments of the script go after --, as in: {first} -- {second}",
                first=call.names[0],
                second=call.names[1],
            )
        )


def _check_acts(call: ParsedLine, line: str) -> None:
    right = _RIGHT.get(call.verb.takes)
    if right is None:
        return
    named = len(call.names) == 1 and _NAMES.get((call.verb.takes, call.names[0]), {"-"}) <= call.given.keys()
    if not right(call.names, call.given) or not (named or forms.fits(TAKES[call.verb.takes](), call.names)):
        flags = (f"--{name.replace('_', '-')}" for name in call.given)
        given = " ".join((call.verb.name, *call.names, *flags))
        raise UsageError(say("{given} is not understood. Usage: {line}", given=given, line=line))


def _model_call(names: Sequence[str], given: Mapping[str, Any]) -> bool:
    """Tell whether the act of `models` has the options that are given."""
    act = names[0] if names else "ls"
    for option, acts in (("any_files", {"register"}), ("tenant", {"ls", "register"}), ("all", {"rm"})):
        if option in given and act not in acts:
            return False
    if act == "register" and len(names) == 2:
        raise UsageError(
            say(
                "the SOURCE of {name} is missing. Usage: {line}",
                name=names[1],
                line=command(f"models register {names[1]} jobs/JOB/ckpt"),
            )
        )
    if given.get("all") and any("@" in one for one in names[1:]):
        raise UsageError(
            say(
                "--all needs names without a version; {name} is one version",
                name=next(one for one in names[1:] if "@" in one),
            )
        )
    return True


def _data_call(names: Sequence[str], given: Mapping[str, Any]) -> bool:
    """Tell whether the act of `data` has the options that are given."""
    act = names[0] if names else "ls"
    if "tenant" in given and act not in {"push", "add"}:
        return False
    return act == "add" or not {"endpoint", "region", "secret", "mode"} & set(given)


def _env_call(names: Sequence[str], given: Mapping[str, Any]) -> bool:
    """Tell whether the act of `env` has the options that are given."""
    return len({"file", "image"} & set(given)) == (names[:1] == ["create"])


def _token_call(names: Sequence[str], given: Mapping[str, Any]) -> bool:
    """Tell whether the words after `token` are one of its acts, with options that it has."""
    act = names[0] if names else "list"
    of_program = "service" in given
    if (of_program or act == "rotate") and "tenant" not in given:
        raise UsageError(say("which team's program is it? Add --tenant NAME"))
    if "tenant" in given and act in {"create", "revoke"} and not of_program:
        return False  # a person's tokens are of no tenant
    return not of_program or (act in {"create", "revoke"} and len(names) == 1)


def help_of(words: Sequence[str], surface: str) -> str:
    """Return the help that is asked for by words after `help`: a verb's, else the surface's; raises `UsageError`."""
    return usage(find(words[0], surface), surface) if words else overview(surface)


def overview(surface: str) -> str:
    """Return the help of a surface: verbs and three examples."""
    lines = [say("MLP Hub: distributed jobs from a cell, a file, or a shell."), ""]
    lines += [f"  {surface} {v.name:<11}{v.help()}" for v in verbs_of(surface)]
    return "\n".join(
        [
            *lines,
            "",
            say("Examples"),
            "",
            *(f"  {e}" for e in examples(surface)),
            "",
            say("Options: {command}", command=f"{surface} VERB --help"),
        ]
    )


def usage(verb: Verb, surface: str) -> str:
    """Return the help of a verb."""
    lines = [f"{surface} {verb.name} {TAKES[verb.takes]()}".rstrip(), f"  {verb.help()}", ""]
    for option in options_of(verb, surface):
        flags = ", ".join(reversed(option.flags)) + (f" {option.metavar}" if option.metavar else "")
        default = shown_default(option)
        said = option.explained
        if default:
            said = sentences(said, say("(default: {value})", value=default))
        lines.append(f"  {flags:<28} {said}")
    return "\n".join(lines).rstrip()


def shown_default(option: Option) -> str:
    """Return an option's default as help and documentation show it; empty where there is none."""
    if option.shown_default is not None:
        return option.shown_default()
    if option.default is None or option.default is False:
        return ""
    return f"{option.default:g}" if isinstance(option.default, float) else str(option.default)


_RIGHT: dict[str, Callable[[Sequence[str], Mapping[str, Any]], bool]] = {
    "model": _model_call,
    "data": _data_call,
    "env": _env_call,
    "secret": lambda _names, _given: True,
    "token": _token_call,
    "sweeps": right_sweep_call,
    "app": right_app_call,
    "team": right_team_call,
    "notify": notice_options.right_notify_call,
    "announce": notice_options.right_announce_call,
    "alerts": right_alerts_call,
}
"""Of verbs with acts: whether the act has the options that are given."""
_NAMES = {
    ("app", "deploy"): {"command", "name"},
    ("token", "create"): {"service"},
    ("token", "revoke"): {"service"},
}
"""Options that take the place of an act's words."""

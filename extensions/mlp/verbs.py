"""The table of verbs, and how a line of words becomes a call: the same for the magic and the command."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mlp.errors import UsageError
from mlp.options import SHAPE, SIZE, SUBMIT, WITH, Option, duration, name, ram

MAGIC, COMMAND = "%mlp", "mlp"


def _count(text: object) -> int:
    if not str(text).isdecimal():
        raise ValueError("is no whole number")
    return int(str(text))


def _some(text: object) -> int:
    if _count(text) < 1:
        raise ValueError("must be at least 1")
    return _count(text)


STATES = (
    "creating running finished error deleting queued admitted starting suspending suspended preempting resizing finishing "
    "failed cancelling cancelled"
)
"""States, then those phases that are not named like one."""


def _state(text: object) -> str:
    if str(text) not in STATES.split():
        near = difflib.get_close_matches(str(text), STATES.split(), 1)
        hint = f"did you mean {near[0]}? Right" if near else "right"
        raise ValueError(f"is no state; {hint}: {', '.join(STATES.split())}")
    return str(text)


STATE = Option("state", "only those in this state or phase", _state, None, "STATE", choices=STATES)
TENANT = Option("tenant", "only those of this tenant", name, None, "NAME", "-t", "tenants")
RANK = Option("rank", "of this rank only", _count, None, "R")
TAIL = Option("tail", "only the last lines", _some, None, "N")
FOLLOW = Option("follow", "go on until the job ends", None, False, short="-f")
JSON = Option("json", "print JSON", None, False)
TOKEN_STDIN = Option("token_stdin", "read the token from standard input", None, False)


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb: `takes` is script, job, jobs, url, shell or nothing."""

    name: str
    help: str
    takes: str = ""
    options: tuple[Option, ...] = ()
    surfaces: frozenset[str] = frozenset({MAGIC, COMMAND})


_COMMAND_ONLY = frozenset({COMMAND})
VERBS: tuple[Verb, ...] = (
    Verb("submit", "run a cell or a script as a job", "script", (*SUBMIT, WITH)),
    Verb("jobs", "list your jobs", "", (STATE, TENANT)),
    Verb("job", "show one job as it is now", "job"),
    Verb("watch", "follow a job, from its beginning", "job"),
    Verb("logs", "show what ranks wrote", "job", (RANK, TAIL, FOLLOW)),
    Verb("why", "why a job waits, and until when", "job"),
    Verb("cancel", "stop jobs for good", "jobs", (STATE, TENANT)),
    Verb("suspend", "stop jobs for now, giving back what they hold", "jobs", (STATE, TENANT)),
    Verb("resume", "queue suspended jobs again", "jobs", (STATE, TENANT)),
    Verb("resubmit", "run jobs again, in another size if you like", "jobs", (STATE, TENANT, *SIZE)),
    Verb("delete", "remove ended jobs with their files", "jobs", (STATE, TENANT)),
    Verb("quota", "what your tenants may use, and who uses it"),
    Verb("offer", "what a job of this shape would get", "", SHAPE),
    Verb("login", "remember address and token", "url", (TOKEN_STDIN,), _COMMAND_ONLY),
    Verb("completion", "print the completion script for a shell", "shell", (), _COMMAND_ONLY),
)
TAKES = {
    "script": "[SCRIPT] [options] [-- ARGUMENTS]",
    "job": "NAME",
    "jobs": "NAME... (names, patterns like digits-*, or a filter)",
    "url": "[URL]",
    "shell": "bash|zsh|fish",
    "": "",
}
EXAMPLES = {
    MAGIC: (
        "%%mlp submit --runtime mpi --workers 2 --name digits     the cell is the program of one rank",
        "%mlp submit train.py --workers 2 -- --epochs 5           a script, its arguments after --",
        "%mlp watch digits                                        live, from its beginning",
    ),
    COMMAND: (
        "mlp submit train.py --workers 2 --name digits -- --epochs 5",
        "mlp watch digits",
        "mlp jobs --state running --json",
    ),
}


@dataclass(slots=True)
class Call:
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
    hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(known)}."
    raise UsageError(f"there is no {surface} {word}. {hint}")


def parse(words: Sequence[str], surface: str) -> Call:
    """Parse verb, options and names; raises `UsageError` naming what is wrong and what is right."""
    verb = find(words[0], surface)
    call = Call(verb)
    known = {flag: o for o in options_of(verb, surface) for flag in o.flags}
    collected: dict[str, list[str]] = {}
    left = list(words[1:])
    while left:
        word = left.pop(0)
        if word == "--":
            call.rest = left
            break
        if not word.startswith("-") or word == "-":
            call.names.append(word)
            continue
        flag, equals, value = word.partition("=")
        option = known.get(flag) or _unknown(flag, verb, surface, known)
        if option.parse is None:
            if equals:
                raise UsageError(f"{flag} takes no value")
            call.given[option.name] = True
            continue
        if not equals:
            if not left or left[0] in known or left[0] == "--":
                raise UsageError(f"{flag} needs a value: {flag} {option.metavar}")
            value = left.pop(0)
            if left and option.parse in {duration, ram} and _in_two(option, value, left[0]):
                raise UsageError(
                    f"{flag} {value} {left[0]}: write it as one word: {flag} {value}{left[0][0]}"
                )
        collected.setdefault(option.name, []).append(value)
    for key, values in collected.items():
        option = next(o for o in known.values() if o.name == key)
        call.given[key] = option.value(values if option.many else values[-1])
    _check_names(call, surface)
    return call


def _in_two(option: Option, number: str, unit: str) -> bool:
    """Tell whether a number and the word after it are one amount, as in `5 minutes`."""
    try:
        option.value(f"{number} {unit}")
    except UsageError:
        return False
    return number.replace(".", "", 1).isdecimal() and unit.isalpha()


def _unknown(flag: str, verb: Verb, surface: str, known: dict[str, Option]) -> Option:
    near = difflib.get_close_matches(flag, known, 1)
    has = ", ".join(f for f in known if f.startswith("--"))
    hint = f"Did you mean {near[0]}?" if near else f"It has: {has}." if has else "It has no options."
    if verb.takes == "script":
        hint += " Arguments of the script itself go after --"
    raise UsageError(f"{surface} {verb.name} has no option {flag}. {hint}")


def _check_names(call: Call, surface: str) -> None:
    verb, count = call.verb, len(call.names)
    line = f"{surface} {verb.name} {TAKES[verb.takes]}".rstrip()
    if call.rest and verb.takes != "script":
        raise UsageError(f"nothing goes after -- here. Right: {line}")
    if verb.takes == "script" and count > 1:
        raise UsageError(
            f"{call.names[1]}: arguments of the script go after --, as in: {call.names[0]} -- {call.names[1]}"
        )
    if verb.takes == "job" and count != 1:
        raise UsageError(f"one job is needed. Right: {line}")
    if verb.takes == "jobs" and not count and not call.given.keys() & {"state", "tenant"}:
        raise UsageError(f"which jobs? Right: {line}")
    if (not verb.takes and count) or (verb.takes in {"url", "shell"} and count > 1):
        raise UsageError(f"{call.names[-1]} is too much. Right: {line}")
    if verb.takes == "shell" and not count:
        raise UsageError(f"which shell? Right: {line}")


def overview(surface: str) -> str:
    """Return the help of a surface: verbs and three examples."""
    lines = ["MLP Hub: distributed jobs from a cell, a file, or a shell.", ""]
    lines += [f"  {surface} {v.name:<11}{v.help}" for v in verbs_of(surface)]
    return "\n".join(
        [
            *lines,
            "",
            "Examples",
            "",
            *(f"  {e}" for e in EXAMPLES[surface]),
            "",
            f"Options: {surface} VERB --help",
        ]
    )


def usage(verb: Verb, surface: str) -> str:
    """Return the help of a verb."""
    lines = [f"{surface} {verb.name} {TAKES[verb.takes]}".rstrip(), f"  {verb.help}", ""]
    for option in options_of(verb, surface):
        flags = ", ".join(reversed(option.flags)) + (f" {option.metavar}" if option.metavar else "")
        default = shown_default(option)
        note = f" (default: {default})" if default else ""
        lines.append(f"  {flags:<28} {option.explained}{note}")
    return "\n".join(lines).rstrip()


def shown_default(option: Option) -> str:
    """Return an option's default as help and documentation show it; empty where there is none."""
    if option.shown_default or option.default is None or option.default is False:
        return option.shown_default
    return f"{option.default:g}" if isinstance(option.default, float) else str(option.default)

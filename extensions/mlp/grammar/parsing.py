"""How a line of words becomes a call: the same for the magic and the command."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlp.errors import UsageError
from mlp.grammar import elsewhere, forms, notice_options
from mlp.grammar.alert_options import right_alerts_call
from mlp.grammar.app_options import right_call as right_app_call
from mlp.grammar.job_options import (
    Option,
    duration,
    part_of_ram,
    ram,
    ram_or_auto,
)
from mlp.grammar.sweep_options import right_call as right_sweep_call
from mlp.grammar.team_options import right_call as right_team_call
from mlp.grammar.verbs import TAKES, Verb, find, languages, options_of
from mlp.language import say
from mlp.rendering.words import command, sentences


@dataclass(slots=True)
class ParsedLine:
    """A parsed line."""

    verb: Verb
    names: list[str] = field(default_factory=list)
    rest: list[str] = field(default_factory=list)
    given: dict[str, Any] = field(default_factory=dict)


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
    _check_note(call, line)
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


def _check_note(call: ParsedLine, line: str) -> None:
    """Take the words after `--` as part of a note, which may begin with a hyphen."""
    if call.verb.takes != "note":
        return
    call.names, call.rest = [*call.names, *call.rest], []
    if len(call.names) < 2:
        raise UsageError(say("a job and its note are needed. Usage: {line}", line=line))


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
    named = (
        len(call.names) == 1
        and _WITHOUT_WORDS.get((call.verb.takes, call.names[0]), {"-"}) <= call.given.keys()
    )
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


_WITHOUT_WORDS = {
    ("app", "deploy"): {"command", "name"},
    ("token", "create"): {"service"},
    ("token", "revoke"): {"service"},
}
"""Options that take the place of an act's words."""

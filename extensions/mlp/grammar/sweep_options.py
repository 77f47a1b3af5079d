"""Options of sweeps, and the words after `sweeps`; the service checks the values of a space."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mlp.grammar.job_options import (
    BY_NAME,
    SUBMIT,
    Option,
    check_param_name,
    duration,
    number,
    param,
    plain_param,
    whole,
    word,
)
from mlp.language import say

Json = dict[str, Any]
GOALS, STOPS, SAMPLERS = ("max", "min"), ("none", "asha", "median"), ("tpe", "random")
MOST_TRIALS = 1000


def grid(value: object) -> dict[str, list[Any]]:
    """Check values to be tried: a mapping from Python, `NAME=V,V` strings from the command line."""
    if isinstance(value, Mapping):
        items = [(str(k), [plain_param(str(k), v) for v in _listed(k, each)]) for k, each in value.items()]
    else:
        items = [
            (name, [param(v.strip()) for v in text.split(",")] if text else [])
            for name, text in _pairs(value)
        ]
    for key, values in items:
        check_param_name(key)
        if not values:
            raise ValueError(say("{name} has no values; write {name}=0.1,0.01", name=key))
    return dict(items)


def search(value: object) -> dict[str, str]:
    """Check spaces to be searched: a mapping from Python, `NAME=SPACE` strings from the command line."""
    items = [(str(k), str(v)) for k, v in value.items()] if isinstance(value, Mapping) else _pairs(value)
    for key, text in items:
        check_param_name(key)
        if not re.fullmatch(r"[a-z]+\s*\(.*\)", text.strip(), re.DOTALL):
            raise ValueError(
                say(
                    "{name} is not a space; write uniform(0, 0.5), loguniform(1e-5, 1), int(1, 8), logint(1, 64) or choice(a, b)",
                    name=key,
                )
            )
    return dict(items)


def _pairs(value: object) -> list[tuple[str, str]]:
    texts = [value] if isinstance(value, str) else list(value)  # type: ignore[call-overload]
    if any("=" not in text for text in texts):
        raise ValueError(say("is not a parameter; write NAME=VALUE, such as lr=0.1"))
    return [(name.strip(), text.strip()) for name, _, text in (t.partition("=") for t in texts)]


def _listed(name: object, values: object) -> list[Any]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise ValueError(say("{name} is not a list of values; write [0.1, 0.01]", name=name))
    return list(values)


def sweep_name(text: object) -> str:
    """Check a sweep's name, which is shorter than a job's: its trials are called NAME.7."""
    if not isinstance(text, str) or not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,42}", text):
        raise ValueError(
            say(
                "is not the name of a sweep; use letters, digits, -, _ and ., beginning with a letter, a digit or _, at most 43 characters"
            )
        )
    return text


def _one_of(*words: str) -> Any:
    def parse(text: object) -> str:
        if text not in words:
            raise ValueError(say("is not one of {choices}", choices=", ".join(words)))
        return str(text)

    return parse


_trials = whole(1, MOST_TRIALS, lambda: say("trials"))
_core_hours = number(0.000001, 100_000_000, lambda: say("core-hours"))
OWN: tuple[Option, ...] = (
    Option("grid", lambda: say("values to try, each with each of the others; may be repeated"), grid, None, "NAME=V,V", many=True,
           shown_default=lambda: say("none")),
    Option("search", lambda: say("a space to choose from: uniform(0, 0.5), loguniform(1e-5, 1), int(1, 8), logint(1, 64), choice(a, b); may be repeated"),
           search, None, "NAME=SPACE", many=True, shown_default=lambda: say("none")),
    Option("trials", lambda: say("maximum number of trials"), _trials, None, "N", shown_default=lambda: say("all points of the grid")),
    Option("metric", lambda: say("metric of mlp.report by which trials are compared"), word(100), None, "NAME", shown_default=lambda: say("none")),
    Option("goal", lambda: say("whether a higher or a lower value is better"), _one_of(*GOALS), None, "GOAL", choices=" ".join(GOALS)),
    Option("stop", lambda: say("rule that ends trials early if others are better at the same step"), _one_of(*STOPS), "none", "RULE", choices=" ".join(STOPS)),
    Option("warmup", lambda: say("no trial is ended early before this step"), whole(1, 1_000_000, lambda: say("steps")), 1, "N"),
    Option("sampler", lambda: say("how points of a space are chosen"), _one_of(*SAMPLERS), "tpe", "SAMPLER", choices=" ".join(SAMPLERS)),
    Option("seed", lambda: say("another number chooses other points"), whole(0, 2**31, lambda: say("seeds")), 0, "N"),
    Option("parallel", lambda: say("maximum number of trials at a time"), whole(1, MOST_TRIALS, lambda: say("trials")), None, "N",
           shown_default=lambda: say("as many as there is room for")),
    Option("core_hours", lambda: say("ends when all trials together have used this amount"), _core_hours, None, "HOURS", shown_default=lambda: say("none")),
    Option("deadline", lambda: say("ends after this time"), duration, None, "2h|1d", shown_default=lambda: say("none")),
)  # fmt: skip
_CHANGED = {
    "priority": replace(BY_NAME["priority"], default="low"),
    "name": replace(BY_NAME["name"], parse=sweep_name),
    "replace": replace(BY_NAME["replace"], help=lambda: say("delete the previous run, with its trials")),
    "wait": replace(BY_NAME["wait"], help=lambda: say("wait until it ends")),
    "dry_run": replace(
        BY_NAME["dry_run"],
        help=lambda: say("show the number of trials, their cost and their end, without a start"),
    ),
}
SWEEP: tuple[Option, ...] = (*OWN, *(_CHANGED.get(o.name, o) for o in SUBMIT if o.name != "array"))
"""Options of a sweep's start: its own, and all of a job."""

EXTEND: tuple[Option, ...] = tuple(
    replace(o, help=told, default=None, shown_default=lambda: say("no increase"))
    for o, told in (
        (next(o for o in OWN if o.name == "trials"), lambda: say("number of additional trials (extend)")),
        (
            next(o for o in OWN if o.name == "core_hours"),
            lambda: say("number of additional core-hours (extend)"),
        ),
        (next(o for o in OWN if o.name == "deadline"), lambda: say("ends after this time from now (extend)")),
    )
)


def starts(given: Mapping[str, Any]) -> bool:
    """Whether the words after `sweep` start one, and do not ask for one that is there."""
    return bool(given.keys() & {"grid", "search"})


def right_call(names: Sequence[str], given: Mapping[str, Any]) -> bool:
    """Tell whether the act of `sweeps` has the options that are given."""
    act = names[0] if names else "ls"
    changes = {o.name for o in EXTEND}
    options = {"ls": {"tenant"}, "extend": changes}
    if act == "extend" and not given.keys() & changes:
        return False
    return given.keys() <= options.get(act, set()) | {"json"}


def own_fields(given: Mapping[str, Any]) -> Json:
    """Return the fields of a sweep in addition to those of a job."""
    return {o.name: given[o.name] for o in OWN if given.get(o.name) is not None}

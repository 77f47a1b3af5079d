"""The one table of a job's options, from which the magic, `mlp.submit()`, `mlp submit`, completion and help are made.

Defaults here are those of the contract; a test compares them with the schemas that the service validates with.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mlp.errors import UsageError
from mlp.language import say
from mlp.rendering.format import SHOWS, memory, span
from mlp.terms import COUNTED as DIMENSIONS
from mlp.terms import PRIORITIES, RUNTIMES, TOPOLOGIES

NAME = re.compile(r"[a-z]([a-z0-9-]{0,48}[a-z0-9])?")
JOB_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,49}")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_UNIT = r"(s|m|h|d|secs?|seconds?|mins?|minutes?|hours?|hrs?|days?)"
_YEAR = 365 * 86400
AUTO = "auto"
MOST_RANKS = 10_000
MOST_DATASETS = 32
MOST_PARAMS = 100
MOST_PATH = 4096
PARAM = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
DATASET = re.compile(
    r"([^/:\s]{1,255}/)?[a-z][a-z0-9.-]{0,49}(:\S{1,200})?|[^/:\s]{1,255}/[a-z][a-z0-9.-]{0,49}/[^:]{1,500}(:\S{1,200})?"
)
"""A dataset, or a part of one that is read through: USER/NAME/PART."""


class Unitless(int):
    """Seconds that were written as a mere number, which means minutes elsewhere: Slurm's `--time=5`."""


def duration(text: object) -> int:
    """Parse `90s`, `30m`, `2h`, `1d`, `1h30m`, `5 minutes`, or a number of seconds, to seconds."""
    mere = True
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        seconds = float(text)
    else:
        written = re.sub(r"\s+", "", str(text).lower())
        parts = re.findall(rf"(\d+(?:\.\d+)?){_UNIT}(?![a-z])", written)
        if written.isdecimal():
            seconds = float(written)
        elif parts and "".join(n + u for n, u in parts) == written:
            mere = False
            seconds = sum(float(n) * _UNITS[u[0]] for n, u in parts)
        else:
            raise ValueError(say("is not a length of time; write 90s, 30m, 2h, 1d or 1h30m"))
    if not 1 <= seconds <= _YEAR:
        raise ValueError(say("must be from 1s to 365d"))
    return Unitless(round(seconds)) if mere else round(seconds)


def workers(text: object) -> int | str:
    """Parse a number of ranks, or MIN:MAX."""
    if isinstance(text, tuple) and len(text) == 2:
        text = f"{text[0]}:{text[1]}"
    written = str(text).strip()
    found = re.fullmatch(r"(\d{1,5})(?::(\d{1,5}))?", written)
    if not found or isinstance(text, bool):
        raise ValueError(say("is not a number of ranks; write 4, or 2:8 for as many as fit"))
    low, high = int(found[1]), int(found[2] or found[1])
    if not 1 <= low <= high <= MOST_RANKS:
        raise ValueError(
            say("must be from 1 to {most}, and MIN must not be above MAX", most=f"{MOST_RANKS:,}")
        )
    return low if low == high else f"{low}:{high}"


def most_workers(value: int | str) -> int:
    """Return the upper end of a value of `workers`."""
    return int(str(value).rpartition(":")[2])


def name(text: object) -> str:
    """Check a tenant's or runtime's name."""
    if not isinstance(text, str) or not NAME.fullmatch(text):
        raise ValueError(say("is not a name; use a-z first, then a-z, 0-9 and -, at most 50 characters"))
    return text


def job_name(text: object) -> str:
    """Check a job's name as people write it."""
    if not isinstance(text, str) or not JOB_NAME.fullmatch(text):
        raise ValueError(
            say(
                "is not a name; use letters, digits, -, _ and ., such as lr-0.001, beginning with a letter, a digit or _, at most 50 characters"
            )
        )
    return text


def number(low: float, high: float, unit: Callable[[], str]) -> Callable[[object], float]:
    """Return what parses a number from `low` to `high`."""

    def parse(text: object) -> float:
        try:
            value = float(text)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise ValueError(say("is not a number of {unit}", unit=unit())) from None
        if not (math.isfinite(value) and low <= value <= high):
            span = {"low": f"{low:g}", "high": f"{high:,.0f}", "unit": unit()}
            raise ValueError(say("must be from {low} to {high} {unit}", **span))
        return value

    return parse


def whole(low: int, high: int, what: Callable[[], str]) -> Callable[[object], int]:
    """Return what parses a whole number from `low` to `high`."""

    def parse(text: object) -> int:
        try:
            value = int(str(text))
        except ValueError:
            raise ValueError(say("is not a whole number of {unit}", unit=what())) from None
        if not low <= value <= high:
            span = {"low": f"{low:,}", "high": f"{high:,}", "unit": what()}
            raise ValueError(say("must be from {low} to {high} {unit}", **span))
        return value

    return parse


def ram(text: object) -> int:
    """Parse an amount of memory to MiB: 512, 512M, 2G, 1.5GiB."""
    return _mib(text, 100)


def ram_or_auto(text: object) -> int | str:
    """Parse an amount of memory to MiB, or `auto`: the amount that fits by earlier runs."""
    return AUTO if text == AUTO else ram(text)


def _shown_ram(value: int | str) -> str:
    return value if isinstance(value, str) else memory(value)


def part_of_ram(text: object) -> int:
    """Parse an amount of memory that is a part of a rank's, to MiB."""
    return _mib(text, 1)


def _mib(text: object, least: int) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:(m|g|t)(?:i?b)?)?", str(text).strip().lower())
    if not found:
        raise ValueError(say("is not an amount of memory; write 1024 (MiB), 512M or 2G"))
    value = round(float(found[1]) * {"m": 1, "g": 1024, "t": 1024**2}[found[2] or "m"])
    if not least <= value <= 1_000_000_000:
        raise ValueError(say("must be at least {least} MiB", least=least))
    return value


def word(limit: int) -> Callable[[object], str]:
    """Return the check of a word of at most `limit` characters."""

    def parse(text: object) -> str:
        if not isinstance(text, str) or not 0 < len(text) <= limit:
            raise ValueError(say("must be a word of at most {n} characters", n=limit))
        return text

    return parse


def _switch(text: object) -> str:
    if isinstance(text, bool):
        return "on" if text else "off"
    if text not in {"on", "off"}:
        raise ValueError(say("is neither on nor off"))
    return str(text)


def env(value: object) -> dict[str, str]:
    """Check variables: a mapping from Python, `K=V` strings from the command line."""
    if isinstance(value, Mapping):
        items = [(str(k), str(v)) for k, v in value.items()]
    else:
        texts = [value] if isinstance(value, str) else list(value)  # type: ignore[call-overload]
        if any("=" not in t for t in texts):
            raise ValueError(say("has no value; write NAME=VALUE"))
        items = [(t.partition("=")[0], t.partition("=")[2]) for t in texts]
    for key, text in items:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,127}", key):
            raise ValueError(
                say("{name} is not a variable's name; use letters, digits and _", name=repr(key))
            )
        if key.startswith("MLP_"):
            raise ValueError(say("{name}: names that begin with MLP_ belong to the platform", name=key))
        if len(text) > 65_536:
            raise ValueError(
                say("{name} is {n} characters; at most {most}", name=key, n=f"{len(text):,}", most="65,536")
            )
    if len(items) > 500:
        raise ValueError(say("{n} variables; at most {most}", n=len(items), most=500))
    return dict(items)


def param(text: str) -> bool | int | float | str:
    """Return what a parameter's text means: a number, true or false, or the text itself."""
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    if re.fullmatch(r"[+-]?\d{1,18}", text):
        return int(text)
    if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text) and math.isfinite(float(text)):
        return float(text)
    return text


def params(value: object) -> dict[str, Any]:
    """Check parameters of the program: a mapping from Python, `K=V` strings from the command line."""
    if isinstance(value, Mapping):
        items = [(str(key), plain_param(str(key), each)) for key, each in value.items()]
    else:
        texts = [value] if isinstance(value, str) else list(value)  # type: ignore[call-overload]
        if any("=" not in text for text in texts):
            raise ValueError(say("is not a parameter; write NAME=VALUE, such as lr=0.1"))
        items = [(name.strip(), param(text.strip())) for name, _, text in (t.partition("=") for t in texts)]
    for key, _ in items:
        check_param_name(key)
    if len(items) > MOST_PARAMS:
        raise ValueError(say("{n} parameters; at most {most}", n=len(items), most=MOST_PARAMS))
    return dict(items)


def check_param_name(key: str) -> None:
    """Refuse what cannot be a parameter's name."""
    if not PARAM.fullmatch(key):
        raise ValueError(
            say(
                "{name} is not a parameter's name; use letters, digits, _, . and -, such as lr",
                name=repr(key),
            )
        )


def plain_param(key: str, value: object) -> bool | int | float | str:
    """Return a parameter that came from Python as what is sent; numpy's numbers become numbers."""
    tolist = getattr(value, "tolist", None)
    plain = tolist() if callable(tolist) else value
    if not isinstance(plain, (bool, int, float, str)):
        raise TypeError(
            say(
                "{name} is a {type}; a parameter is a number, a text, or true or false",
                name=key,
                type=type(value).__name__,
            )
        )
    if isinstance(plain, float) and not math.isfinite(plain):
        raise ValueError(say("{name} is {value}, which is not a finite number", name=key, value=plain))
    return plain


def data(value: object) -> list[str]:
    """Check datasets: one from Python, or several."""
    texts = [value] if isinstance(value, str) else list(value)  # type: ignore[call-overload]
    if len(texts) > MOST_DATASETS:
        raise ValueError(say("{n} datasets; at most {most}", n=len(texts), most=MOST_DATASETS))
    for text in texts:
        if not isinstance(text, str) or not DATASET.fullmatch(text):
            raise ValueError(
                say("is not a dataset; write NAME, USER/NAME, or either with :PATH, such as digits:train")
            )
    return texts


def array(text: object) -> str:
    """Check the indices of an array."""
    if not isinstance(text, str) or not re.fullmatch(r"[\d,:\- ]+(%\d+)?", text):
        raise ValueError(say("is not an array; write 0-31, 0-30:2, 1,5,9, or 0-31%8 for 8 at a time"))
    return text


def workdir(text: object) -> str:
    """Check a directory below the home: whether it is there, the service says."""
    written = os.fspath(text) if isinstance(text, os.PathLike) else text
    if not isinstance(written, str) or not 0 < len(written) <= MOST_PATH:
        raise ValueError(say("must be a path of at most {n} characters", n=f"{MOST_PATH:,}"))
    if written.startswith("/") or ".." in written.split("/"):
        raise ValueError(
            say(
                "is not a path below your home directory; write a path such as project/src, not beginning with / and without .."
            )
        )
    return written


def names(text: object) -> tuple[str, ...]:
    """Split `lr,batch`."""
    found = tuple(p.strip() for p in str(text).split(",") if p.strip())
    if not found or any(not p.isidentifier() for p in found):
        raise ValueError(say("must be names of variables, such as lr,batch"))
    return found


@dataclass(frozen=True, slots=True)
class Option:
    """One option: `parse` takes what a person wrote (a string, or a Python value) and raises ValueError."""

    name: str  # its key in Python and on the wire
    help: Callable[[], str]
    parse: Callable[[object], Any] | None  # None: a switch
    default: Any = None
    metavar: str = ""
    short: str = ""
    choices: str = ""  # what completion offers: fixed words, or one of runtimes, tenants
    also: Callable[[], str] | None = None  # what may be written besides, and completion cannot offer
    many: bool = False
    wire: bool = True  # sent; else a matter of this side only
    written: str = ""  # its flag, where people write it otherwise than it is called: one of several
    shown_default: Callable[[], str] | None = None
    amount: bool = False  # sent in `amounts`: a dimension that is only counted, named as in the hub's table
    shows: Callable[[Any], str] = str  # writes its value

    @property
    def flag(self) -> str:
        """How it is written in a magic or a shell."""
        return self.written or "--" + self.name.replace("_", "-")

    @property
    def flags(self) -> tuple[str, ...]:
        """All ways of writing it."""
        return (self.flag, self.short) if self.short else (self.flag,)

    @property
    def explained(self) -> str:
        """Say what it is and, where only some words are right, which."""
        if self.choices in {"", "runtimes", "tenants"}:
            return self.help()
        choices = ", ".join([*self.choices.split(), *([self.also()] if self.also else [])])
        return say("{what}: {choices}", what=self.help(), choices=choices)

    def value(self, given: object) -> Any:
        """Parse; raises `UsageError` naming option, value and what is right."""
        if self.parse is None:
            return bool(given)
        try:
            return self.parse(given)
        except (ValueError, TypeError) as error:
            shown = ",".join(given) if isinstance(given, list) else given
            raise UsageError(say("{what}: {why}", what=f"{self.flag} {shown}", why=str(error))) from None


SUBMIT: tuple[Option, ...] = (
    Option("runtime", lambda: say("{runtimes}, or one of your team's (see the verb runtimes)", runtimes=", ".join(RUNTIMES)), name, None, "NAME", "-r", "runtimes",
           shown_default=lambda: say("mpi with --workers > 1, else plain")),
    Option("workers", lambda: say("number of ranks; a range starts with as many as fit"), workers, 1, "N|MIN:MAX", "-w"),
    Option("cpu", lambda: say("cores per rank"), number(0.1, 1_000_000, lambda: say("cores")), 1.0, "CORES"),
    Option("gpu", lambda: say("devices per rank"), number(0, 100_000, lambda: say("devices")), 0.0, "DEVICES"),
    Option("gpu_kind", lambda: say("kind of device"), word(64), None, "KIND", shown_default=lambda: say("any")),
    Option("ram", lambda: say("memory per rank; auto: what earlier runs used, and a margin"), ram_or_auto, 1024, "MIB|auto",
           shown_default=lambda: say("1024 MiB"), shows=_shown_ram),
    *(
        Option(key, told, part_of_ram if of == "ram" else whole(1, 10**9, lambda: ""), None, "MIB" if of == "ram" else "N",
               shown_default=usual, amount=True, shows=SHOWS[key])
        for key, (of, told, usual) in DIMENSIONS.items()
    ),
    Option("ps", lambda: say("parameter servers (tf)"), whole(0, 1000, lambda: say("parameter servers")), 0, "N"),
    Option("tenant", lambda: say("team whose quota it uses"), name, None, "NAME", "-t", "tenants", shown_default=lambda: say("yours")),
    Option("priority", lambda: say("priority class"), name, "normal", "CLASS", choices=" ".join(PRIORITIES)),
    Option("time_limit", lambda: say("end an attempt after this time"), duration, None, "30m|2h|1d", shown_default=lambda: say("none"), shows=span),
    Option("retries", lambda: say("number of restarts after a failure; a lack of memory causes no restart"), whole(0, 100, lambda: say("retries")), 0, "N"),
    Option("checkpoint_every", lambda: say("how often the program should save; it finds the seconds in MLP_CHECKPOINT_EVERY"), duration, None, "30m|2h", shown_default=lambda: say("none"), shows=span),
    Option("topology", lambda: say("placement of ranks"), word(100), None, "RULE", choices=" ".join(TOPOLOGIES),
           also=lambda: say("required:LABEL (on nodes with one value of that label), preferred:LABEL (the same, if possible)"),
           shown_default=lambda: say("bin-pack")),
    Option("tensorboard", lambda: say("draw the TensorBoard event files that the program writes"), _switch, "on", "on|off", choices="on off"),
    Option("env", lambda: say("a variable for the program; may be repeated"), env, None, "K=V", "-e", many=True,
           shown_default=lambda: say("none")),
    Option("params", lambda: say("a parameter of the program, which finds it in mlp.params; may be repeated"), params, None, "NAME=VALUE",
           many=True, written="--param", shown_default=lambda: say("none")),
    Option("data", lambda: say("a dataset that the program reads below /data, and also at PATH if given; may be repeated"), data, None,
           "[USER/]NAME[:PATH]", many=True, shown_default=lambda: say("none")),
    Option("env_name", lambda: say("an environment of the team with packages for the job's Python (see the verb env)"), job_name, None, "NAME",
           shown_default=lambda: say("none")),
    Option("workdir", lambda: say("the directory in which the program starts, as a path below your home"), workdir, None, "DIR",
           shown_default=lambda: say("your home; for a notebook, its own directory")),
    Option("array", lambda: say("one job per index, listed as one entry; the program finds its index in mlp.params.index and MLP_ARRAY_INDEX"), array, None,
           "0-31[%8]", wire=False, shown_default=lambda: say("none")),
    Option("name", lambda: say("after it has ended, the same name makes its next run; earlier runs stay"), job_name, None,
           "NAME", "-n", shown_default=lambda: say("the file's name, or runtime and date")),
    Option("replace", lambda: say("delete the earlier runs of the name"), None, False),
    Option("wait", lambda: say("wait until the job ends"), None, False, wire=False),
    Option("detach", lambda: say("return at once and show nothing more"), None, False, wire=False),
    Option("dry_run", lambda: say("check the request and show it with its expected result, without sending it"), None, False, wire=False),
)  # fmt: skip

WITH = Option(
    "with",
    lambda: say("notebook variables to send, as JSON"),
    names,
    None,
    "A,B",
    wire=False,
    shown_default=lambda: say("none"),
)
"""Only a notebook has variables; in Python they are `variables={...}`."""

COUNTED: tuple[Option, ...] = tuple(o for o in SUBMIT if o.amount)
"""Options of the dimensions that are only counted."""


def as_sent(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as they are sent, those of counted dimensions in `amounts`."""
    amounts = {o.name: given[o.name] for o in COUNTED if o.name in given}
    return {k: v for k, v in given.items() if k not in amounts} | ({"amounts": amounts} if amounts else {})


SHAPE: tuple[Option, ...] = tuple(
    o for o in SUBMIT if o.wire and o.name not in {"env", "params", "workdir", "name", "replace"}
)
"""Options of a job's shape: the fields of `JobShape`."""

OFFER: tuple[Option, ...] = (
    *SHAPE,
    replace(
        next(o for o in SUBMIT if o.name == "name"),
        help=lambda: say("a job's name: the offer counts the earlier runs of it"),
        shown_default=lambda: say("none"),
    ),
)
"""Options that an offer takes."""

SIZE: tuple[Option, ...] = tuple(
    replace(o, default=None, shown_default=lambda: say("as before"))
    for o in SUBMIT
    if o.amount or o.name in {"workers", "cpu", "gpu", "ram", "priority", "time_limit"}
)
"""Options of a job's size for a resubmission."""

NO_LIMIT = "none"
AGAIN: tuple[Option, ...] = (
    *SIZE,
    replace(
        next(o for o in SUBMIT if o.name == "params"),
        help=lambda: say("a parameter to change; may be repeated"),
        shown_default=lambda: say("as before"),
    ),
    Option(
        "exactly",
        lambda: say("refuse if script, data or environment have changed"),
        None,
        False,
    ),
)
"""Options of a resubmission."""


def _limit_or_none(text: object) -> int | None:
    return None if text is None or text == NO_LIMIT else duration(text)


UPDATE: tuple[Option, ...] = (
    next(o for o in SIZE if o.name == "priority"),
    replace(
        next(o for o in SIZE if o.name == "time_limit"), parse=_limit_or_none, metavar=f"30m|2h|{NO_LIMIT}"
    ),
    Option(
        "place",
        lambda: say("its place in its team's queue, for the team's admins: first, or its own place again"),
        word(8),
        None,
        "first|own",
        choices="first own",
        shown_default=lambda: say("as before"),
    ),
)
"""Options to change a job that has not ended."""

BY_NAME: Mapping[str, Option] = {o.name: o for o in (*SUBMIT, WITH)}


def default_runtime(count: int | str, ps: int = 0) -> str:
    """Return the runtime of a job that names none."""
    if ps:
        return "tf"
    return "mpi" if most_workers(count) > 1 else "plain"


def seconds_meant(given: Mapping[str, Any]) -> str:
    """Say that a time limit which was given without a unit is in seconds; empty where there is nothing to say."""
    limit = given.get("time_limit")
    if not isinstance(limit, Unitless):
        return ""
    return say(
        "--time-limit {n}: a number without a unit is seconds, so the job is ended after {span}; "
        "for {n} minutes write {n}m",
        n=int(limit),
        span=span(limit),
    )

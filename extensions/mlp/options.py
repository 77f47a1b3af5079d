"""The one table of a job's options, from which the magic, `mlp.submit()`, `mlp submit`, completion and help are made.

Defaults here are those of the contract; a test compares them with the schemas that the service validates with.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mlp.errors import UsageError

NAME = re.compile(r"[a-z]([a-z0-9-]{0,48}[a-z0-9])?")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_UNIT = r"(s|m|h|d|secs?|seconds?|mins?|minutes?|hours?|hrs?|days?)"
_YEAR = 365 * 86400
MOST_RANKS = 10_000
RUNTIMES = ("mpi", "tf", "torch", "plain")
"""The platform's own, all of which run Python."""


def duration(text: object) -> int:
    """Parse `90s`, `30m`, `2h`, `1d`, `1h30m`, `5 minutes`, or a number of seconds, to seconds."""
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        seconds = float(text)
    else:
        written = re.sub(r"\s+", "", str(text).lower())
        parts = re.findall(rf"(\d+(?:\.\d+)?){_UNIT}(?![a-z])", written)
        if written.isdecimal():
            seconds = float(written)
        elif parts and "".join(n + u for n, u in parts) == written:
            seconds = sum(float(n) * _UNITS[u[0]] for n, u in parts)
        else:
            raise ValueError("is no length of time; right: 90s, 30m, 2h, 1d, 1h30m")
    if not 1 <= seconds <= _YEAR:
        raise ValueError("must be from 1s to 365d")
    return round(seconds)


def workers(text: object) -> int | str:
    """Parse a number of ranks, or MIN:MAX."""
    if isinstance(text, tuple) and len(text) == 2:
        text = f"{text[0]}:{text[1]}"
    written = str(text).strip()
    found = re.fullmatch(r"(\d{1,5})(?::(\d{1,5}))?", written)
    if not found or isinstance(text, bool):
        raise ValueError("is no number of ranks; right: 4, or 2:8 for as many as fit")
    low, high = int(found[1]), int(found[2] or found[1])
    if not 1 <= low <= high <= MOST_RANKS:
        raise ValueError(f"must be from 1 to {MOST_RANKS:,}, and MIN must not be above MAX")
    return low if low == high else f"{low}:{high}"


def most_workers(value: int | str) -> int:
    """Return the upper end of what `workers` gave."""
    return int(str(value).rpartition(":")[2])


def name(text: object) -> str:
    """Check a job's, tenant's or runtime's name."""
    if not isinstance(text, str) or not NAME.fullmatch(text):
        raise ValueError("is no name; right: a-z first, then a-z, 0-9 and -, at most 50 characters")
    return text


def _number(low: float, high: float, unit: str) -> Callable[[object], float]:
    def parse(text: object) -> float:
        try:
            value = float(text)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise ValueError(f"is no number of {unit}") from None
        if not (math.isfinite(value) and low <= value <= high):
            raise ValueError(f"must be from {low:g} to {high:,.0f} {unit}")
        return value

    return parse


def _whole(low: int, high: int, what: str) -> Callable[[object], int]:
    def parse(text: object) -> int:
        try:
            value = int(str(text))
        except ValueError:
            raise ValueError(f"is no whole number of {what}") from None
        if not low <= value <= high:
            raise ValueError(f"must be from {low:,} to {high:,} {what}")
        return value

    return parse


def ram(text: object) -> int:
    """Parse an amount of memory to MiB: 512, 512M, 2G, 1.5GiB."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:(m|g|t)(?:i?b)?)?", str(text).strip().lower())
    if not found:
        raise ValueError("is no amount of memory; right: 1024 (MiB), 512M, 2G")
    value = round(float(found[1]) * {"m": 1, "g": 1024, "t": 1024**2}[found[2] or "m"])
    if not 100 <= value <= 1_000_000_000:
        raise ValueError("must be at least 100 MiB")
    return value


def _word(limit: int) -> Callable[[object], str]:
    def parse(text: object) -> str:
        if not isinstance(text, str) or not 0 < len(text) <= limit:
            raise ValueError(f"must be a word of at most {limit} characters")
        return text

    return parse


def env(value: object) -> dict[str, str]:
    """Check variables: a mapping from Python, `K=V` strings from the command line."""
    if isinstance(value, Mapping):
        items = [(str(k), str(v)) for k, v in value.items()]
    else:
        texts = [value] if isinstance(value, str) else list(value)  # type: ignore[call-overload]
        if any("=" not in t for t in texts):
            raise ValueError("is no variable; right: NAME=VALUE")
        items = [(t.partition("=")[0], t.partition("=")[2]) for t in texts]
    for key, text in items:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,127}", key):
            raise ValueError(f"{key!r} is no variable's name; right: letters, digits and _")
        if key.startswith("MLP_"):
            raise ValueError(f"{key}: names that begin with MLP_ are the platform's")
        if len(text) > 65_536:
            raise ValueError(f"{key} is {len(text):,} characters; at most 65,536")
    if len(items) > 500:
        raise ValueError(f"{len(items)} variables; at most 500")
    return dict(items)


def names(text: object) -> tuple[str, ...]:
    """Split `lr,batch`."""
    found = tuple(p.strip() for p in str(text).split(",") if p.strip())
    if not found or any(not p.isidentifier() for p in found):
        raise ValueError("must be names of variables, as in: lr,batch")
    return found


@dataclass(frozen=True, slots=True)
class Option:
    """One option: `parse` takes what a person wrote (a string, or a Python value) and raises ValueError."""

    name: str  # its key in Python and on the wire
    help: str
    parse: Callable[[object], Any] | None  # None: a switch
    default: Any = None
    metavar: str = ""
    short: str = ""
    choices: str = ""  # what completion offers: fixed words, or one of runtimes, tenants
    also: str = ""  # what may be written besides, and completion cannot offer
    many: bool = False
    wire: bool = True  # part of the job's record; else a matter of this side only
    shown_default: str = ""

    @property
    def flag(self) -> str:
        """How it is written in a magic or a shell."""
        return "--" + self.name.replace("_", "-")

    @property
    def flags(self) -> tuple[str, ...]:
        """All ways of writing it."""
        return (self.flag, self.short) if self.short else (self.flag,)

    @property
    def explained(self) -> str:
        """Say what it is and, where only some words are right, which."""
        if self.choices in {"", "runtimes", "tenants"}:
            return self.help
        return f"{self.help}: {', '.join([*self.choices.split(), *filter(None, [self.also])])}"

    def value(self, given: object) -> Any:
        """Parse; raises `UsageError` naming option, value and what is right."""
        if self.parse is None:
            return bool(given)
        try:
            return self.parse(given)
        except (ValueError, TypeError) as error:
            shown = ",".join(given) if isinstance(given, list) else given
            raise UsageError(f"{self.flag} {shown}: {error}") from None


SUBMIT: tuple[Option, ...] = (
    Option("runtime", f"{', '.join(RUNTIMES[:-1])} or {RUNTIMES[-1]}", name, None, "NAME", "-r", "runtimes",
           shown_default="mpi with --workers > 1, else plain"),
    Option("workers", "ranks; a range starts with as many as fit", workers, 1, "N|MIN:MAX", "-w"),
    Option("cpu", "cores per rank", _number(0.1, 1_000_000, "cores"), 1.0, "CORES"),
    Option("gpu", "devices per rank", _number(0, 100_000, "devices"), 0.0, "DEVICES"),
    Option("gpu_kind", "kind of device", _word(64), None, "KIND", shown_default="any"),
    Option("ram", "memory per rank", ram, 1024, "MIB", shown_default="1024 MiB"),
    Option("ps", "parameter servers (tf)", _whole(0, 1000, "parameter servers"), 0, "N"),
    Option("tenant", "whose quota it uses", name, None, "NAME", "-t", "tenants", shown_default="yours"),
    Option("priority", "class of priority", name, "normal", "CLASS", choices="low normal high"),
    Option("time_limit", "end an attempt after this time", duration, None, "30m|2h|1d", shown_default="none"),
    Option("retries", "restarts after a failure", _whole(0, 100, "retries"), 0, "N"),
    Option("checkpoint_every", "how often the program should save; it finds the seconds in MLP_CHECKPOINT_EVERY", duration, None, "30m|2h", shown_default="none"),
    Option("topology", "where ranks go", _word(100), None, "RULE", choices="same-node same-rack same-zone spread",
           also="required:LABEL (on nodes with one value of that label), preferred:LABEL (so if it can be had)",
           shown_default="bin-pack"),
    Option("env", "a variable for the program; may be repeated", env, None, "K=V", "-e", many=True,
           shown_default="none"),
    Option("name", "unique among your jobs", name, None, "NAME", "-n", shown_default="runtime and date"),
    Option("wait", "stay until the job ends", None, False, wire=False),
    Option("detach", "return at once and show nothing further", None, False, wire=False),
    Option("dry_run", "check and show what would be sent and what it would get", None, False, wire=False),
)  # fmt: skip

WITH = Option(
    "with", "notebook variables to send along, as JSON", names, None, "A,B", wire=False, shown_default="none"
)
"""Only a notebook has variables; in Python they are `variables={...}`."""

SHAPE: tuple[Option, ...] = tuple(o for o in SUBMIT if o.wire and o.name not in {"env", "name"})
"""What an offer depends on."""

SIZE: tuple[Option, ...] = tuple(
    replace(o, default=None, shown_default="as before")
    for o in SUBMIT
    if o.name in {"workers", "cpu", "gpu", "ram", "priority", "time_limit"}
)
"""What a job may be submitted again with."""

BY_NAME: Mapping[str, Option] = {o.name: o for o in (*SUBMIT, WITH)}


def default_runtime(count: int | str, ps: int = 0) -> str:
    """Return the runtime of a job that names none."""
    if ps:
        return "tf"
    return "mpi" if most_workers(count) > 1 else "plain"

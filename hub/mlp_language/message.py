"""Message: a sentence as data.

The sentence's template (English, the key of the catalogues) and its arguments are stored and sent.
Each argument has a type that defines its text. The text is made once, for its reader (`render`): in
their language and time zone, with all that they may not see hidden. Nothing is ever parsed from a
text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Quantity:
    """Amount of something in the unit that people count it in: 2.2 of "cpu", 2048 of "MiB ram", 1 of "a100 gpu"."""

    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class Span:
    """Length of time in seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Moment:
    """Point in time in seconds since 1970; `said` is when it was spoken of. Below 1e9 both count from a scenario's begin."""

    at: float
    said: float = field(compare=False)


@dataclass(frozen=True, slots=True)
class Period:
    """Time from one point to another, both in seconds as in `Moment`."""

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class JobRef:
    """Reference to a workload: a job, a notebook server, or a replica of the app that it names.

    For readers who may not see it, `name` and `user` are None. For readers who may not know of its
    tenant, that is None too.
    """

    uid: str
    name: str | None
    user: str | None
    tenant: str | None
    kind: str = "job"  # or "server", or "app"
    replica: int | None = None  # of an app


@dataclass(frozen=True, slots=True)
class TenantRef:
    """Reference to a tenant; None for readers who may not know of it."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Message:
    """Sentence, or part of one: `template` with {holes} for `args`; `plural` is its form for an `n` that is not 1."""

    template: str
    args: Mapping[str, Arg] = field(default_factory=dict)
    plural: str | None = None

    def __bool__(self) -> bool:
        """Whether it says anything."""
        return bool(self.template)

    def __str__(self) -> str:
        """Return the English text, for logs and debugging."""
        from mlp_language.render import plain  # noqa: PLC0415 - text is made there; this is the way back for logs only

        return plain(self)


Arg: TypeAlias = (
    "str | int | float | Quantity | Span | Moment | Period | JobRef | TenantRef | Message | tuple[Arg, ...]"
)
"""Value of a hole; a tuple is a list of things: "a, b and c"."""


def msg(template: str, /, **args: Arg) -> Message:
    """Return a message; its template is a literal, because the extractor of catalogue keys reads the source."""
    return Message(template, args)


def msgs(one: str, several: str, /, n: int, **args: Arg) -> Message:
    """Return a message with a separate form for one: the hole {n} is the number."""
    return Message(one, {"n": n, **args}, several)


def verbatim(text: str) -> Message:
    """Return a message of a program's or a person's text: it is the same in every language."""
    return Message("{text}", {"text": text})


NOTHING = Message("")
"""Empty message."""
MOST_LISTED = 4
"""Things of a list that are named; the rest is counted."""


def some(items: Collection[Arg], total: int | None = None) -> tuple[Arg, ...]:
    """Return the first of `total` things, as a list whose rest is counted: a stored crowd stays small.

    `items` need not hold more than `MOST_LISTED` of the `total`.
    """
    total = len(items) if total is None else total
    if total <= MOST_LISTED:
        return tuple(items)
    more = total - MOST_LISTED + 1
    return (*islice(items, MOST_LISTED - 1), msgs("{n} more", "{n} more", n=more))


def refs(message: Message) -> tuple[JobRef | TenantRef, ...]:
    """Return all jobs and tenants that a message refers to, in order."""
    found: list[JobRef | TenantRef] = []

    def note(ref: JobRef | TenantRef) -> JobRef | TenantRef:
        found.append(ref)
        return ref

    mapped(message, note)
    return tuple(found)


def mapped(message: Message, ref: Callable[[JobRef | TenantRef], JobRef | TenantRef]) -> Message:
    """Return the message with each reference replaced by the result of `ref`.

    If that changes nothing, the same message is returned.
    """
    args: dict[str, Arg] | None = None
    for name, value in message.args.items():
        # most arguments of most messages are these, and lists of jobs have thousands of messages
        if type(value) in _WITHOUT_REFS:
            continue
        new = _arg_mapped(value, ref)
        if new is not value:
            args = dict(message.args) if args is None else args
            args[name] = new
    return message if args is None else Message(message.template, args, message.plural)


_WITHOUT_REFS = frozenset((str, int, float, Quantity, Span, Moment, Period))


def _arg_mapped(value: Arg, ref: Callable[[JobRef | TenantRef], JobRef | TenantRef]) -> Arg:
    match value:
        case JobRef() | TenantRef():
            return ref(value)
        case Message():
            return mapped(value, ref)
        case tuple():
            new = tuple([_arg_mapped(v, ref) for v in value])
            return value if all(a is b for a, b in zip(new, value, strict=True)) else new
    return value


@dataclass(frozen=True, slots=True)
class Viewer:
    """Permissions of a reader: `own` is the tenants whose jobs it sees by name, None for all.

    `knows` is the tenants that it knows of.
    """

    own: frozenset[str] | None = None
    knows: frozenset[str] = frozenset()

    def sees(self, tenant: str | None) -> bool:
        """Whether jobs of a tenant are shown by name."""
        return self.own is None or tenant in self.own

    def hidden(self, message: Message) -> Message:
        """Return the message without what this viewer may not see."""
        return message if self.own is None else mapped(message, self._either)

    def _either(self, ref: JobRef | TenantRef) -> JobRef | TenantRef:
        if isinstance(ref, JobRef):
            return self.ref(ref)
        return ref if self.sees(ref.name) or ref.name in self.knows else TenantRef(None)

    def ref(self, ref: JobRef) -> JobRef:
        """Return a reference to a job as this viewer sees it."""
        if self.sees(ref.tenant):
            return ref
        kind = "server" if ref.kind == "server" else "job"  # of what one may not see, replicas count as jobs
        return JobRef("", None, None, ref.tenant if ref.tenant in self.knows else None, kind)


ALL = Viewer()
"""Viewer for the platform's admins and of logs."""


def to_data(message: Message) -> dict[str, Any]:
    """Return a message as JSON has it. Raises `TypeError` for an argument of another type than `Arg`."""
    data: dict[str, Any] = {"id": message.template}
    if message.plural is not None:
        data["plural"] = message.plural
    if message.args:
        data["args"] = {
            name: value if type(value) in _AS_IT_IS else _arg_to(value)
            for name, value in message.args.items()
        }
    return data


_AS_IT_IS = frozenset((str, int, float))


def _arg_to(value: Arg) -> Any:  # noqa: PLR0911 - one for each type
    match value:
        case str() | int() | float():
            return value
        case Message():
            return to_data(value)
        case Quantity(amount, unit):
            return {"amount": amount, "unit": unit}
        case Span(seconds):
            return {"seconds": seconds}
        case Moment(at, said):
            return {"at": at, "said": said}
        case Period(start, end):
            return {"start": start, "end": end}
        case JobRef(uid, name, user, tenant, kind, replica):
            data = {"job": name, "user": user, "tenant": tenant, "uid": uid, "kind": kind}
            return data if replica is None else {**data, "replica": replica}
        case TenantRef(name):
            return {"tenant": name}
        case tuple():
            return [_arg_to(v) for v in value]
    raise TypeError(f"a message cannot have a {type(value).__name__} in it")


def from_data(data: Mapping[str, Any]) -> Message:
    """Return the message that `to_data` wrote."""
    return Message(data["id"], {k: _arg_from(v) for k, v in data.get("args", {}).items()}, data.get("plural"))


def _arg_from(data: Any) -> Arg:  # noqa: PLR0911 - one for each type
    match data:
        case {"id": _}:
            return from_data(data)
        case {"unit": unit, "amount": amount}:
            return Quantity(amount, unit)
        case {"seconds": seconds}:
            return Span(seconds)
        case {"at": at, "said": said}:
            return Moment(at, said)
        case {"start": start, "end": end}:
            return Period(start, end)
        case {"job": name, "user": user, "tenant": tenant, "uid": uid, "kind": kind}:
            return JobRef(uid, name, user, tenant, kind, data.get("replica"))
        case {"tenant": name}:
            return TenantRef(name)
        case list():
            return tuple([_arg_from(v) for v in data])
    value: str | int | float = data
    return value

"""Text of a message for one reader."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from unicodedata import east_asian_width

from mlp_language.catalogue import DEFAULT, catalogue, spoken
from mlp_language.message import (
    Arg,
    JobRef,
    Message,
    Moment,
    Period,
    Quantity,
    Span,
    TenantRef,
    msg,
    msgs,
    some,
)

CALENDAR = 1e9
"""Seconds above which a time is a hub's, since 1970; those of a scenario count from its begin and are below."""


@dataclass(frozen=True, slots=True)
class Reader:
    """For whom text is made: their language (a tag of `LANGUAGES`) and time zone; None: UTC, and it says so."""

    language: str = DEFAULT
    zone: tzinfo | None = None


ENGLISH = Reader()


def plain(message: Message) -> str:
    """Return the English text of a message, times in UTC."""
    return render(message, ENGLISH)


def render(message: Message, reader: Reader) -> str:
    """Return the text of a message for a reader."""
    if not message.template:
        return ""  # a catalogue's own head is what it has for nothing
    known = catalogue(reader.language)
    if message.plural is None:
        template = known.gettext(message.template)
    else:
        n = message.args["n"]
        template = known.ngettext(message.template, message.plural, n if isinstance(n, int) else 2)
    return template.format_map({name: _arg(value, reader) for name, value in message.args.items()})


def say(template: str, /, **args: Arg) -> str:
    """Return the text of a message in the language of this process: for terminals and kernels."""
    return render(Message(template, args), here())


def says(one: str, several: str, /, n: int, **args: Arg) -> str:
    """Return the text of a message with a form for one in the language of this process."""
    return render(Message(one, {"n": n, **args}, several), here())


def padded(text: str, width: int) -> str:
    """Return a text filled up with blanks for a terminal, on which a Chinese character takes two places."""
    return text + " " * (width - sum(2 if east_asian_width(c) in "WF" else 1 for c in text))


def here() -> Reader:
    """Return who reads what this process writes on its terminal: in their language, the machine's time zone."""
    return Reader(spoken(), datetime.now().astimezone().tzinfo)


def _arg(value: Arg, reader: Reader) -> str:  # noqa: C901, PLR0911 - one for each type
    match value:
        case str():
            return value
        case int():
            return str(value)
        case float():
            return _number(value)
        case Message():
            return render(value, reader)
        case Quantity(amount, unit):
            return f"{_number(amount)} {catalogue(reader.language).gettext(unit)}"
        case Span(seconds):
            return render(_span(seconds), reader)
        case Moment():
            return render(_moment(value, reader), reader)
        case Period():
            return render(_period(value, reader), reader)
        case JobRef():
            return render(_job(value), reader)
        case TenantRef(name):
            return name if name is not None else render(msg("another team"), reader)
        case tuple():
            return _list(value, reader)


def _job(ref: JobRef) -> Message:
    server = ref.kind == "server"
    if ref.name is not None:
        who = {"name": ref.name, "user": ref.user or ""}
        if ref.replica is not None:
            return msg("app {name} of {user}, replica {n}", **who, n=ref.replica)
        return msg("the notebook server of {user}", **who) if server else msg("job {name} of {user}", **who)
    return _hidden(ref, 1)


def _hidden(ref: JobRef, n: int) -> Message:
    if ref.tenant is None:
        if ref.kind == "server":
            return msgs("a notebook server of another team", "{n} notebook servers of other teams", n=n)
        return msgs("a job of another team", "{n} jobs of other teams", n=n)
    if ref.kind == "server":
        return msgs(
            "a notebook server of team {tenant}",
            "{n} notebook servers of team {tenant}",
            n=n,
            tenant=ref.tenant,
        )
    return msgs("a job of team {tenant}", "{n} jobs of team {tenant}", n=n, tenant=ref.tenant)


def _list(items: tuple[Arg, ...], reader: Reader) -> str:
    """Join with commas and a final "and"; jobs that the reader may not see are counted, and so is what is too much."""
    alike = Counter(item for item in items if isinstance(item, JobRef) and item.name is None)
    named = [item for item in items if not (isinstance(item, JobRef) and item.name is None)]
    parts = [_arg(item, reader) for item in some([*named, *(_hidden(ref, n) for ref, n in alike.items())])]
    if len(parts) < 2:
        return "".join(parts)
    first = render(msg(", "), reader).join(parts[:-1])
    return render(msg("{first} and {last}", first=first, last=parts[-1]), reader)


def _span(seconds: float) -> Message:
    """Return a length of time in the largest unit that it fills twice: 90 s, 2 h, 3.5 days."""
    for size, template in (
        (86400.0, msg("{n} days")), (3600.0, msg("{n} h")), (60.0, msg("{n} min"))
    ):  # fmt: skip
        if seconds >= 2 * size:
            return Message(template.template, {"n": round(seconds / size, 1)})
    return msg("{n} s", n=round(seconds))


def _number(value: float) -> str:
    return f"{value:.10g}"


def _period(period: Period, reader: Reader) -> Message:
    if period.start < CALENDAR:
        return msg("{start} to {end}", start=Span(period.start), end=Span(period.end))
    zone = reader.zone or UTC
    try:
        start, end = datetime.fromtimestamp(period.start, zone), datetime.fromtimestamp(period.end, zone)
    except (OverflowError, ValueError, OSError):
        return msg("{start} to {end}", start=Span(period.start), end=Span(period.end))
    until = f"{end:%H:%M}" if start.date() == end.date() else f"{end:%Y-%m-%d %H:%M}"
    return msg(
        "{start} to {end}", start=f"{start:%Y-%m-%d %H:%M}", end=until if reader.zone else f"{until} UTC"
    )


def _moment(moment: Moment, reader: Reader) -> Message:
    if moment.at < CALENDAR:
        return msg("in {span}", span=Span(max(moment.at - moment.said, 0.0)))
    zone = reader.zone or UTC
    try:
        at, said = datetime.fromtimestamp(moment.at, zone), datetime.fromtimestamp(moment.said, zone)
    except (OverflowError, ValueError, OSError):
        return msg("in {span}", span=Span(moment.at - moment.said))
    time = at.strftime("%H:%M:%S") if reader.zone else f"{at:%H:%M:%S} UTC"
    return msg("at {time}", time=time if at.date() == said.date() else f"{at:%Y-%m-%d} {time}")

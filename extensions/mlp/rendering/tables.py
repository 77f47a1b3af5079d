"""Tables that show as HTML in a notebook, as columns on a terminal, and as JSON for programs."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from mlp.language import say, says
from mlp.rendering import ends, times, words
from mlp.rendering.fitting import GAP, narrowed, one_line_each, start_of, width
from mlp.rendering.format import SHOWS, amount, clock_time, file_size, memory, storage
from mlp.rendering.history import FINAL
from mlp.rendering.terminal import plain
from mlp.rendering.words import SCOPE_PREFIX, sentences
from mlp.terms import ORDERS

if TYPE_CHECKING:
    from mlp.client.downloads import Fetched

Json = dict[str, Any]
WIDEST = 60
"""Characters of a cell on a terminal."""


class Table:
    """A title, columns, rows of text; `data` is what it was made from."""

    def __init__(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[str]],
        data: Any,
        *,
        title: str = "",
        empty: str = "",
        notes: Sequence[str] = (),
        least_first: Sequence[int] | None = None,
    ) -> None:
        self.columns = columns
        self.rows = [[plain(str(cell)).replace("\n", " ") for cell in row] for row in rows]
        self.data = data
        self.title = title
        self.empty = empty
        self.notes = [plain(note) for note in notes]
        self.least_first = least_first
        """Columns that a narrow terminal may lack, the least important first; None: rows continue below instead."""
        self.wide = False
        """Whether a narrow terminal gets all columns as well."""

    def __repr__(self) -> str:
        if not self.rows:
            return self.empty
        table = [list(self.columns), *([_clip(cell) for cell in row] for row in self.rows)]
        most, notes = terminal_width(), self.notes
        if self.least_first is not None and most and not self.wide:
            lines, left_out = one_line_each(table, most, self.least_first)
            hidden = [self.columns[i] for i in sorted(left_out) if any(row[i] for row in self.rows)]
            if hidden:
                notes = [*notes, _hidden(hidden)]
        else:
            widths = [max(width(row[i]) for row in table) for i in range(len(self.columns))]
            if self.least_first is None:
                widths = narrowed(widths, most)
            lines = [line for row in table for line in _lines(row, widths)]
        return "\n".join([*([self.title] if self.title else []), *lines, *notes])

    def _repr_html_(self) -> str:
        if not self.rows:
            return f"<p>{escape(self.empty)}</p>"
        head = "".join(f'<th style="text-align:left">{escape(c)}</th>' for c in self.columns)
        body = "".join("<tr>" + "".join(map(_html_cell, row)) + "</tr>" for row in self.rows)
        title = f"<p><b>{escape(self.title)}</b></p>" if self.title else ""
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"{title}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"


def _hidden(columns: Sequence[str]) -> str:
    """Name the columns that a terminal has no room for."""
    return say(
        "Not shown: {columns}. All columns: {option}", columns=say(", ").join(columns), option="--wide"
    )


def terminal_width() -> int:
    """Return how many characters fit a line of the terminal that is written to; 0 where it is none."""
    return shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else 0


def _lines(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Return the lines of a row; text that exceeds its column continues below."""
    cells = [_wrapped(cell, most) if most else [cell] for cell, most in zip(row, widths, strict=True)]
    return [
        (" " * GAP)
        .join(part + " " * (w - width(part)) for part, w in zip(parts, widths, strict=True))
        .rstrip()
        for parts in zip_longest(*cells, fillvalue="")
    ]


def _clip(cell: str) -> str:
    """Keep a line of a table readable; the HTML's title and `data` have all of it."""
    if width(cell) <= WIDEST:
        return cell
    return f"{start_of(cell, WIDEST - 3)}..."


def _html_cell(cell: str) -> str:
    """Write a cell; a sentence is cut, what one copies, as an address, is not."""
    shown = _clip(cell) if " " in cell else cell
    title = "" if shown == cell else f' title="{escape(cell)}"'
    return f'<td style="text-align:left"{title}>{escape(shown)}</td>'


def _wrapped(text: str, most: int) -> list[str]:
    """Break a text into lines of `most` columns: between words, and Chinese, which has none, anywhere."""
    if text.isascii():
        return textwrap.wrap(text, most) or [""]
    lines = []
    while width(text) > most:
        line = start_of(text, most)
        space = line.rfind(" ")
        if space > 0 and text[len(line)].isascii() and line[-1].isascii():
            line = line[:space]
        lines.append(line.rstrip())
        text = text[len(line) :].lstrip()
    return [*lines, text]


class Sentences:
    """Some lines of text, made from `data`."""

    def __init__(self, lines: Sequence[str], data: Any) -> None:
        self.lines = [plain(str(line)) for line in lines]
        self.data = data

    def __repr__(self) -> str:
        return "\n".join(self.lines)


def jobs(found: Sequence[Json], *, none: str = "") -> Table:
    """List jobs, those that have not ended first, the newest first; `none` is what to say where there are none."""
    ended = FINAL | {"deleting"}
    newest = sorted(found, key=lambda j: str(j.get("submitted_at", "")), reverse=True)
    ordered = sorted(newest, key=lambda j: j.get("phase") in ended)
    rows = [
        [
            j.get("name", ""),
            str(j.get("run") or 1),
            words.state_word(j),
            f"{j.get('progress') or 0} %",
            j.get("tenant", ""),
            j.get("runtime", ""),
            words.workers(j),
            times.age(j),
            ends.failure(j) or (words.standing(j) if j.get("phase") in words.NOT_YET else ""),
        ]
        for j in ordered
    ]
    columns = (
        say("name"),
        say("run"),
        say("state"),
        say("progress"),
        say("team"),
        say("runtime"),
        say("ranks"),
        say("time"),
        say("why"),
    )
    empty = none or say("No jobs yet. Start one: {command}", command=words.first_command())
    # runtime, ranks, run, team, progress
    return Table(columns, rows, list(ordered), empty=empty, least_first=(5, 6, 1, 4, 3))


def files(found: Sequence[Json], path: str = "") -> Table:
    """List a directory: names, sizes and when they were written."""
    ends = {"directory": "/", "link": "@", "other": "?"}
    rows = [
        [
            f"{e.get('name', '')}{ends.get(str(e.get('kind')), '')}",
            file_size(e.get("size")) if e.get("kind") == "file" else "",
            clock_time(e.get("modified")),
        ]
        for e in found
    ]
    empty = say("{directory} is empty.", directory=path) if path else say("It has written nothing yet.")
    return Table((say("name"), say("size"), say("written")), rows, list(found), empty=empty)


def models(found: Sequence[Json]) -> Table:
    """List versions of models, the newest first."""
    rows = [
        [
            words.version(m),
            words.model_state(m),
            words.stage(m.get("stage")),
            str(m.get("format") or ""),
            file_size(m.get("size")),
            str(m.get("tenant", "")),
            str(m.get("src", "")),
        ]
        for m in found
    ]
    columns = (
        say("name"),
        say("state"),
        say("stage"),
        say("format"),
        say("size"),
        say("team"),
        say("from"),
    )
    command = words.command("models register NAME jobs/JOB/ckpt")
    return Table(
        columns, rows, list(found), empty=say("You have no models. Register one: {command}", command=command)
    )


def model(found: Json) -> Sentences:
    """Write what a version is and where it comes from."""
    lineage = found.get("lineage") or {}
    kind = say(", ").join(
        filter(
            None,
            [
                str(found.get("format") or ""),
                file_size(found.get("size")),
                says("1 file", "{n} files", int(found.get("files") or 0)),
            ],
        )
    )
    lines = [
        say("{what}: {why}", what=words.version(found), why=words.model_state(found)),
        say("Stage: {stage}", stage=words.stage(found.get("stage"))),
        kind,
        say("From {src}, {time}", src=str(found.get("src")), time=clock_time(found.get("created_at"))),
    ]
    facts = [f"{key} {value}" for key, value in (found.get("facts") or {}).items()]
    lines += [say(", ").join(facts)] if facts else []
    if found.get("pickled"):
        lines.append(say("Loading it runs code that is in it: load only models that you trust."))
    if lineage.get("data"):
        lines.append(say("Datasets: {names}", names=say(", ").join(lineage["data"])))
    metrics = [f"{key} {value:g}" for key, value in (lineage.get("metrics") or {}).items()]
    lines += [say("Metrics: {metrics}", metrics=say(", ").join(metrics))] if metrics else []
    if lineage.get("code_sha256"):
        lines.append(say("Code: {digest}", digest=f"sha256 {lineage['code_sha256'][:12]}"))
    return Sentences(lines, found)


def registered(made: Json) -> Sentences:
    """Write that a version was taken in, and whether its files are there."""
    name, size = words.version(made), file_size(made.get("size"))
    command = words.command(f"models show {name}")
    if made.get("state") == "ready":
        return Sentences(
            [say("{name} is ready, {size}. See: {command}", name=name, size=size, command=command)], made
        )
    return Sentences(
        [say("{name} is being copied, {size}. See: {command}", name=name, size=size, command=command)], made
    )


def staged(moved: Json) -> Sentences:
    """Write how far a version is used now."""
    name = words.version(moved)
    lines = {
        "production": lambda: say("{name} is in production; the version before it is archived", name=name),
        "staging": lambda: say("{name} is in staging", name=name),
        "archived": lambda: say("{name} is archived", name=name),
    }
    line = lines.get(str(moved.get("stage")), lambda: say("{name} is in no stage", name=name))()
    return Sentences([line], moved)


def fetched(found: Fetched, model: Json | None = None) -> Sentences:
    """Write what came, and what did not; of a model whether it is safe to load."""
    size = file_size(sum(int(f["size"]) for f in found.files))
    lines = [
        says("1 file, {size}: {to}", "{n} files, {size}: {to}", len(found.files), size=size, to=str(found.to))
    ]
    if found.left_out:
        names = say(", ").join(found.left_out[:3])
        lines.append(
            says(
                "Not fetched, because it is a link or not a file: {names}",
                "Not fetched, because they are links or not files: {n} ({names})",
                len(found.left_out),
                names=names,
            )
        )
    if model and model.get("pickled"):
        lines.append(say("Loading it runs code that is in it: load only models that you trust."))
    return Sentences(lines, {"files": found.files, "left_out": found.left_out})


_PARTS: Mapping[str, Callable[[], str]] = {
    "quota": lambda: say("quota"),
    "used": lambda: say("used"),
    "lent": lambda: say("lent"),
    "free": lambda: say("free"),
    "borrowed": lambda: say("borrowed"),
    "may borrow": lambda: say("may borrow"),
}
_SHARING: Mapping[str, Callable[[], str]] = {
    "lent": lambda: say("lent: others have it until your own jobs need it."),
    "borrowed": lambda: say("borrowed: in use beyond the quota, and taken back first."),
    "may borrow": lambda: say("may borrow: quota that others leave idle now."),
}


def _standing(tenant: Json, kind: str, write: Callable[[Any], str]) -> dict[str, str]:
    """Return a tenant's standing in one dimension: its quota in parts, then the amounts of others.

    The latter are the amounts of others that it has, and that it may have.
    """
    total, inuse = tenant.get(kind), tenant.get(f"{kind}_inuse") or 0
    lent, over = (float((tenant.get(part) or {}).get(kind) or 0) for part in ("lent", "over"))
    may = (tenant.get("free") or {}).get(kind, None if total is None else max(total - inuse, 0))
    own = inuse if total is None else min(inuse, total)
    idle = None if total is None else max(total - own - lent, 0)
    free = may if idle is None or may is None else min(idle, may)
    kept = 0 if idle is None or free is None else idle - free
    beyond = write(inuse - own)
    if over > _NOTHING:
        whole = over >= inuse - own - _NOTHING
        beyond = (
            say("{amount} beyond its limit", amount=beyond)
            if whole
            else say("{amount} ({over} beyond its limit)", amount=beyond, over=write(over))
        )
    return {
        "quota": write(total),
        "used": write(own),
        "lent": write(lent) if lent else "",
        "free": say("{amount} ({kept} kept back)", amount=write(free), kept=write(kept))
        if kept > _NOTHING
        else write(free),
        "borrowed": beyond if inuse - own > _NOTHING else "",
        "may borrow": write(may - free)
        if may is not None and free is not None and may - free > _NOTHING
        else "",
    }


_NOTHING = 1e-9


def runtimes(found: Sequence[Any]) -> Table:
    """List the runtimes, the platform's own first, with the commands that they start."""
    rows = [
        (
            str(r.get("name", "")),
            str(r.get("tenant") or say("everybody")),
            str(r.get("title", "")),
            " ".join(r.get("launcher") or r.get("program") or ()),
            str(r.get("description", "")),
        )
        for r in found
        if r.get("state", "approved") == "approved"
    ]
    columns = (say("name"), say("team"), say("title"), say("starts"), say("description"))
    return Table(columns, rows, found, empty=say("No runtimes yet"))


def tokens(found: Sequence[Any]) -> Table:
    """List tokens, without their values: purpose, rights, expiry, and the last use with its address."""
    rows = [
        (
            str(t.get("id", "")),
            str(t.get("note", "")) + (f" {say('(this one)')}" if t.get("current") else ""),
            " ".join(str(s).removeprefix(SCOPE_PREFIX) for s in t.get("scopes") or ()),
            clock_time(t.get("expires")) or say("never"),
            clock_time(t.get("last_used")) or say("never"),
            str(t.get("last_from") or ""),
        )
        for t in found
    ]
    columns = (say("id"), say("name"), say("may"), say("ends"), say("last used"), say("from"))
    soon = [str(t.get("note", "")) for t in found if t.get("ends_soon")]
    notes = [say("{name} ends soon", name=name) for name in soon]
    return Table(columns, rows, found, empty=say("You have no tokens"), notes=notes)


def secrets(found: Sequence[Any]) -> Table:
    """List secrets by name, with the names of their keys."""
    rows = [
        (
            str(s.get("name", "")),
            " ".join(map(str, s.get("keys") or ())),
            clock_time(s.get("changed_at")),
            str(s.get("changed_by") or ""),
        )
        for s in found
    ]
    columns = (say("name"), say("has"), say("set"), say("by"))
    return Table(columns, rows, found, empty=say("No secrets yet"))


def service_tokens(found: Sequence[Any]) -> Table:
    """List a tenant's accounts for programs, a line for each token."""
    rows = [
        (
            str(s.get("name", "")),
            str(s.get("user", "")),
            str(s.get("made_by", "")),
            clock_time(t.get("expires")) or say("never"),
            clock_time(t.get("last_used")) or say("never"),
            str(t.get("last_from") or ""),
        )
        for s in found
        for t in list(s.get("tokens") or [{}])
    ]
    columns = (say("name"), say("user"), say("made by"), say("ends"), say("last used"), say("from"))
    return Table(columns, rows, found, empty=say("The team has no tokens for programs"))


_DIMENSIONS: tuple[tuple[str, Callable[[Any], str]], ...] = (
    ("cpu", amount),
    ("gpu", amount),
    ("ram", memory),
    ("rom", storage),
)
"""Dimensions that every hub has; counted ones follow."""


def _with_counted(tenant: Json) -> Json:
    """Return a tenant whose counted dimensions are fields like the others."""
    used = {f"{name}_inuse": amount for name, amount in (tenant.get("amounts_inuse") or {}).items()}
    return {**tenant, **(tenant.get("amounts") or {}), **used}


def _holders(holdings: Sequence[Any]) -> tuple[str, str]:
    """Say who works with a quota, and who only stores something: that holds none of the cores."""
    held: dict[str, list[str]] = {}
    stored: dict[str, list[str]] = {}
    for h in holdings:
        works = h.get("cpu") or h.get("ram")
        amounts = [say("{amount} cpu", amount=amount(h.get("cpu"))), memory(h.get("ram"))] if works else []
        amounts += [say("{amount} gpu", amount=amount(h["gpu"]))] if h.get("gpu") else []
        amounts += [file_size(h.get("rom"))] if h.get("rom") or not amounts else []
        thing = say("{what} ({where})", what=str(h.get("holder")), where=say(", ").join(amounts))
        of = held if works or h.get("gpu") else stored
        of.setdefault(str(h.get("user", "")), []).append(thing)
    return _by_user(held), _by_user(stored)


def _by_user(things: Mapping[str, Sequence[str]]) -> str:
    return say("; ").join(
        say("{what}: {why}", what=user, why=say(", ").join(each)) for user, each in things.items()
    )


def quota(found: Any) -> Table:
    """List what each tenant has, what is used of it, lent and free, what it has of others, and who uses it."""
    usages = found if isinstance(found, list) else found.get("tenants", found.get("items", [found]))
    rows: list[tuple[str, str, dict[str, str], str]] = []
    for usage in usages:
        tenant = usage.get("tenant", usage)
        users, stores = _holders(usage.get("holdings") or ())
        name, holders = tenant.get("name", ""), {"cpu": users, "rom": stores}
        known = _with_counted(tenant)
        for kind, write in (*_DIMENSIONS, *SHOWS.items()):
            if kind not in ("cpu", "ram") and not known.get(kind) and not known.get(f"{kind}_inuse"):
                continue
            title = say("storage") if kind == "rom" else kind
            rows.append(
                (name if kind == "cpu" else "", title, _standing(known, kind, write), holders.get(kind, ""))
            )
    shared = [part for part in _SHARING if any(row[2][part] for row in rows)]
    parts = [p for p in _PARTS if p not in _SHARING or p in shared]
    whole = say("quota = used + lent + free") if "lent" in shared else say("quota = used + free")
    if "borrowed" in shared:
        whole = say("{sum}, total in use = used + borrowed", sum=whole)
    notes = [sentences(say("{text}.", text=whole), *(_SHARING[part]() for part in shared))] if shared else []
    for usage in usages:
        tenant = usage.get("tenant", usage)
        if order := tenant.get("queue_order"):
            name, told = str(tenant.get("name")), ORDERS.get(order)
            notes.append(
                say("Order of the jobs of {tenant}: {order}.", tenant=name, order=told() if told else order)
            )
        if said := words.network({"tenant": tenant.get("name"), "network": tenant.get("job_network")}):
            notes.append(said)
        if said := words.isolation(tenant):
            notes.append(said)
    return Table(
        (say("team"), "", *(_PARTS[p]() for p in parts), say("current users")),
        [[name, kind, *(standing[p] for p in parts), users] for name, kind, standing, users in rows],
        found,
        empty=say("You are in no team yet. Ask an admin to add you to one"),
        notes=notes,
    )

"""Tables that show as HTML in a notebook, as columns on a terminal, and as JSON for programs."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import zip_longest
from typing import Any

from mlp import words
from mlp.history import FINAL
from mlp.picture import plain

Json = dict[str, Any]
WIDEST = 60
"""Characters of a cell on a terminal."""
NARROWEST = 8
"""Characters of a column to which it is narrowed where a terminal is narrow."""
GAP = 2


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
    ) -> None:
        self.columns = columns
        self.rows = [[plain(str(cell)).replace("\n", " ") for cell in row] for row in rows]
        self.data = data
        self.title = title
        self.empty = empty
        self.notes = [plain(note) for note in notes]

    def __repr__(self) -> str:
        if not self.rows:
            return self.empty
        table = [list(self.columns), *([_clip(cell) for cell in row] for row in self.rows)]
        widths = _fitted(
            [max(len(row[i]) for row in table) for i in range(len(self.columns))], terminal_width()
        )
        lines = [line for row in table for line in _lines(row, widths)]
        return "\n".join([*([self.title] if self.title else []), *lines, *self.notes])

    def _repr_html_(self) -> str:
        if not self.rows:
            return f"<p>{escape(self.empty)}</p>"
        head = "".join(f'<th style="text-align:left">{escape(c)}</th>' for c in self.columns)
        body = "".join(
            "<tr>" + "".join(f'<td style="text-align:left">{escape(c)}</td>' for c in row) + "</tr>"
            for row in self.rows
        )
        title = f"<p><b>{escape(self.title)}</b></p>" if self.title else ""
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"{title}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"


def terminal_width() -> int:
    """Return how many characters fit a line of the terminal that is written to; 0 where it is none."""
    return shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else 0


def _fitted(widths: list[int], most: int) -> list[int]:
    """Narrow the widest columns until the table fits a terminal of `most` characters, as far as it may (0: any fits)."""
    while most and sum(widths) + GAP * (len(widths) - 1) > most and max(widths) > NARROWEST:
        at = widths.index(max(widths))
        widths = [*widths[:at], widths[at] - 1, *widths[at + 1 :]]
    return widths


def _lines(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Write a row; what does not fit its column goes on below."""
    cells = [
        textwrap.wrap(cell, width) or [""] if width else [cell]
        for cell, width in zip(row, widths, strict=True)
    ]
    return [
        (" " * GAP).join(part.ljust(w) for part, w in zip(parts, widths, strict=True)).rstrip()
        for parts in zip_longest(*cells, fillvalue="")
    ]


def _clip(cell: str) -> str:
    """Keep a line of a terminal readable; the HTML and `data` have all of it."""
    return cell if len(cell) <= WIDEST else f"{cell[: WIDEST - 3]}..."


class Sentences:
    """Some lines of text, made from `data`."""

    def __init__(self, lines: Sequence[str], data: Any) -> None:
        self.lines = [plain(str(line)) for line in lines]
        self.data = data

    def __repr__(self) -> str:
        return "\n".join(self.lines)


def jobs(found: Sequence[Json]) -> Table:
    """List jobs, those that have not ended first, the newest first."""
    ended = FINAL | {"deleting"}
    newest = sorted(found, key=lambda j: str(j.get("submitted_at", "")), reverse=True)
    ordered = sorted(newest, key=lambda j: j.get("phase") in ended)
    rows = [
        [
            j.get("name", ""),
            j.get("phase", ""),
            f"{j.get('progress') or 0} %",
            j.get("tenant", ""),
            j.get("runtime", ""),
            words.workers(j),
            words.age(j),
            words.failure(j) or (words.standing(j) if j.get("phase") == "queued" else ""),
        ]
        for j in ordered
    ]
    columns = ("name", "state", "progress", "tenant", "runtime", "ranks", "time", "why")
    empty = f"There are no jobs. Start one: {words.first_command()}"
    return Table(columns, rows, list(ordered), empty=empty)


def verdicts(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Write typed reasons as sentences."""
    return [f"{words.reason(v.get('reason'))}: {v.get('message', '')}" for v in found]


MOST_DECISIONS = 4


def why(found: Json, job: Mapping[str, Any] | None = None, told: Sequence[Json] = ()) -> Sentences:
    """Write why a job stands where it stands; `job` is needed for how one that has ended did so.

    `told` is what the scheduler decided about it, and why.
    """
    name, phase = found.get("job"), found.get("phase")
    end = words.ended(job) if job else ""
    lines = [end or f"{name} is {phase}."]
    if job and (failure := words.failure(job)):
        lines.append(f"{failure}.")
        first = (job.get("failure") or {}).get("rank")
        lines.append(
            f"All that it wrote: {words.command(f'logs {name}')}{'' if first is None else f' --rank {first}'}"
        )
    lines += words.stopped(found)
    lines += verdicts(found.get("reasons") or ())
    if phase == "suspended":
        lines.append(f"To go on: {words.command(f'resume {name}')}")
    if found.get("position") is not None:
        alone = found["position"] == found.get("queue_length") == 1
        place = "Next" if alone else f"Place {found['position']} of {found.get('queue_length')}"
        lines.append(f"{place} in the queue.")
    if found.get("expected_start"):
        because = f" ({found['expected_because']})" if found.get("expected_because") else ""
        lines.append(f"Expected to start {words.starts(found['expected_start'])}{because}.")
        if found.get("sure_because"):
            lines.append(f"How sure: {found.get('how_sure')}, {found['sure_because']}.")
    lines += words.prospects(found)
    for decision in told[-MOST_DECISIONS:]:
        lines += decided(decision)
    return Sentences(lines, {**found, "decisions": list(told)} if told else found)


def decided(decision: Json) -> list[str]:
    """Write one decision of the scheduler: why then, why there, why this one."""
    lines = [f"{words.clock_time(decision.get('time'))}: {decision.get('summary')}."]
    if decision.get("waited_for"):
        lines.append(f"  Until then it waited: {decision['waited_for']}.")
    if decision.get("changed"):
        lines.append(f"  What had changed: {'; '.join(map(str, decision['changed'][:3]))}.")
    others = [str(n.get("node")) for n in decision.get("nodes") or () if not n.get("chosen")]
    if others:
        lines.append(f"  Next best: {', '.join(others[:3])}.")
    for victim in decision.get("victims") or ():
        whose = f"tenant {victim['tenant']}" if victim.get("tenant") else "another tenant"
        who = f"{victim['job']} of {victim['user']}" if victim.get("job") else f"a job of {whose}"
        how = "stopped" if victim.get("chosen") else "left alone"
        if victim.get("gives"):
            how = f"gives up {victim['gives']} worker{'' if victim['gives'] == 1 else 's'}"
        lines.append(
            f"  {who}, priority {words.priority(victim.get('priority'))}: {how}, {victim.get('why')}."
        )
    lines += [f"  Not touched: {text}." for text in (decision.get("spared") or ())[:3]]
    return lines


NEVER = {"ExceedsMaxQuota", "NoMatchingFlavor"}
"""Reasons that do not pass by waiting."""


def offer(found: Json) -> Sentences:
    """Write what a job of a shape would get."""
    cost = f"{words.amount(found.get('cpu'))} cpu, {words.amount(found.get('gpu'))} gpu, {words.memory(found.get('ram'))}"
    gives_way = [str(text) for text in found.get("gives_way") or ()]
    if found.get("fits_now"):
        places = found.get("placement") or {}
        where = ", ".join(f"{n} rank{'' if n == 1 else 's'} on {node}" for node, n in places.items())
        when = "now"
        if gives_way:
            when = (
                f"as soon as others have made room, in {words.span(float(found.get('grace') or 0))} at most"
            )
        lines = [f"Would start {when}{f': {where}' if where else ''}."]
        lines += [f"{text[:1].upper()}{text[1:]}." for text in gives_way]
    elif found.get("expected_start"):
        because = f" ({found['expected_because']})" if found.get("expected_because") else ""
        lines = [f"Would wait; expected to start {words.starts(found['expected_start'])}{because}."]
    elif NEVER & {str(v.get("reason")) for v in found.get("reasons") or ()}:
        lines = ["Would be refused: it can never start."]
    else:
        unknown = words.unknown_start({**found, "phase": "queued"})
        lines = [f"Would wait; when it would start is not known.{f' {unknown}' if unknown else ''}"]
    lines.append(f"Takes of the quota: {cost}.")
    lines += verdicts(found.get("reasons") or ())
    lines += [f"Would start now with {way}." for way in found.get("would_start_now") or ()]
    return Sentences(lines, found)


ORDERS = {
    "priority": "by priority, then by age",
    "fifo": "by age alone",
    "fair": "in turns of its members, by what they use now and lately",
    "maxmin": "in turns of its members, by what they use now",
}
"""What jobs of one tenant go by."""
_SHARING = {
    "lent": "lent: others have it until your own jobs need it.",
    "borrowed": "borrowed: in use beyond the quota, and taken back first.",
    "may borrow": "may borrow: what others leave idle now.",
}


def _standing(tenant: Json, kind: str, write: Callable[[Any], str]) -> dict[str, str]:
    """Write how a tenant stands in one dimension: its own quota in its parts, then what it has and may have of others."""
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
        beyond = f"{beyond} beyond what it may" if whole else f"{beyond} ({write(over)} beyond what it may)"
    return {
        "quota": write(total),
        "used": write(own),
        "lent": write(lent) if lent else "",
        "free": f"{write(free)}{f' ({write(kept)} kept back)' if kept > _NOTHING else ''}",
        "borrowed": beyond if inuse - own > _NOTHING else "",
        "may borrow": write(may - free)
        if may is not None and free is not None and may - free > _NOTHING
        else "",
    }


_NOTHING = 1e-9


def quota(found: Any) -> Table:
    """List what each tenant has, what is used of it, lent and free, what it has of others, and who uses it."""
    usages = found if isinstance(found, list) else found.get("tenants", found.get("items", [found]))
    rows: list[tuple[str, str, dict[str, str], str]] = []
    for usage in usages:
        tenant = usage.get("tenant", usage)
        held: dict[str, list[str]] = {}
        for h in usage.get("holdings") or ():
            amounts = f"{words.amount(h.get('cpu'))} cpu, {words.memory(h.get('ram'))}"
            amounts += f", {words.amount(h['gpu'])} gpu" if h.get("gpu") else ""
            held.setdefault(str(h.get("user", "")), []).append(f"{h.get('holder')} ({amounts})")
        users = "; ".join(f"{user}: {', '.join(things)}" for user, things in held.items())
        for number, (kind, write) in enumerate(
            (("cpu", words.amount), ("gpu", words.amount), ("ram", words.memory))
        ):
            if kind == "gpu" and not tenant.get(kind) and not tenant.get("gpu_inuse"):
                continue
            shown = [tenant.get("name", ""), users] if number == 0 else ["", ""]
            rows.append((shown[0], kind, _standing(tenant, kind, write), shown[1]))
    shared = [part for part in _SHARING if any(row[2][part] for row in rows)]
    parts = [
        p
        for p in ("quota", "used", "lent", "free", "borrowed", "may borrow")
        if p not in _SHARING or p in shared
    ]
    whole = "quota = used + lent + free" if "lent" in shared else "quota = used + free"
    in_all = ", in use in all = used + borrowed" if "borrowed" in shared else ""
    notes = [" ".join([f"{whole}{in_all}.", *(_SHARING[part] for part in shared)])] if shared else []
    for usage in usages:
        tenant = usage.get("tenant", usage)
        if order := tenant.get("queue_order"):
            notes.append(f"Jobs of {tenant.get('name')} start {ORDERS.get(order, f'in the order {order}')}.")
    return Table(
        ("tenant", "", *parts, "who uses it"),
        [[name, kind, *(standing[p] for p in parts), users] for name, kind, standing, users in rows],
        found,
        empty="You are in no tenant yet. Ask an admin to add you to one",
        notes=notes,
    )

"""Terms that tables explain, such as options, settings and reasons: each row gets an anchor, and the search finds it by its name."""

from __future__ import annotations

import html
import re
from collections import Counter
from typing import Any, NamedTuple

LEFT_OUT = frozenset({"reference/access", "reference/rest"})
"""Pages whose headings are their terms already."""

_ROWS = re.compile(
    r'<h(?P<level>[23]) id="(?P<heading>[^"]+)">(?P<title>.*?)</h[23]>'
    r"|<tr>\n<td>(?P<cell><code>.*?)</td>(?P<rest>.*?)</tr>",
    re.DOTALL,
)
_TERM = re.compile(r"<code>(.*?)</code>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")


class Row(NamedTuple):
    """A row of a table: the term, the heading above it, and the position of its tag in the page."""

    term: str
    heading: str
    title: str
    text: str
    at: int


def with_terms(name: str, page: str) -> tuple[str, list[dict[str, Any]]]:
    """Return a page whose rows have anchors, and the entries of the search for them."""
    rows = [] if name in LEFT_OUT else list(_rows(page))
    count = Counter(row.term for row in rows)
    entries, taken = [], set(re.findall(r'id="([^"]+)"', page))
    out, done = [], 0
    for row in rows:
        anchor = anchor_of(row.term)
        if count[row.term] > 1 or anchor in taken:
            anchor = f"{row.heading}-{anchor}"
        if not anchor or anchor in taken:
            continue
        taken.add(anchor)
        out += [page[done : row.at], f'<tr id="{anchor}">']
        done = row.at + len("<tr>")
        entries.append(
            {
                "location": f"{name}.html#{anchor}",
                "level": 2,
                "title": f"<code>{html.escape(row.term, quote=False)}</code>",
                "text": row.text,
                "above": row.title,
            }
        )
    return "".join([*out, page[done:]]), entries


def anchor_of(term: str) -> str:
    """Return the anchor of a term: lower case, without the hyphens that an option begins with."""
    return re.sub(r"[^\w.:-]+", "-", term.lower()).strip("-")


def _rows(page: str) -> list[Row]:
    heading = title = ""
    found = []
    for match in _ROWS.finditer(page):
        if match["heading"]:
            heading, title = match["heading"], _plain(match["title"])
        elif (code := _TERM.search(match["cell"])) is not None:
            term = _plain(code[1])
            # an option is found without the name of its value
            term = term.partition(" ")[0] if term.startswith("-") else term
            cells = " ".join(_plain(cell) for cell in match["rest"].split("</td>"))
            found.append(Row(term, heading, title, html.escape(cells.strip(), quote=False), match.start()))
    return found


def _plain(text: str) -> str:
    return html.unescape(_TAG.sub("", text)).replace("¶", "").strip()

r"""Screen of a terminal for output that moves its cursor: progress bars, also nested or of several rows.

Only a stream that moves the cursor passes through this module. A log holds the text as shown, not
as written. `STATE` before a text means that it replaces all that its line had until then. `BREAK`
is between rows of a line that continues. So readers of a log need no terminal.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Sequence

STATE = "\r\x1b[J"
BREAK = "\x1b[E"
REACH = 16
"""Tuning: rows above the last one that may still change, until it is known how far a program moves up: live displays
that come out right, for rows that are told twice a second."""
REACH_MOST = 64
"""Safety: the same of a program that moves up further than that."""
COLUMNS = 4096
"""Safety: columns that a program may move to: bounds memory."""
LONGEST = 1 << 16
"""Safety: columns of a row that is written without cursor moves; bounds memory.

The text beyond it becomes a row of its line, so that nothing is lost.
"""
SIZE = 1 << 17
"""Safety: columns of all rows that may still change together: bounds memory; those at the top leave sooner then."""
CALM = 64
"""Tuning: rows without any steering after which a stream is taken for a plain one again."""
_HELD = 256
_STEERS = re.compile(rb"\r(?!\n)|[\x08\x0b\x0c]|\x1b(?:\[[0-?]*[ -/]*(?:[@-ln-~]|\Z)|[78DEM]|\Z)")
_PIECES = re.compile(
    r"(?P<run>[^\x00-\x1f\x7f-\x9f]+)"
    r"|\x1b\[(?P<args>[0-?]*)[ -/]*(?P<does>[@-~])"
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|\x1b(?P<short>[ -/]*[0-~])"
    r"|(?P<control>.)",
    re.DOTALL,
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?|[ -/]*)?\Z")
_NARROW = re.compile("[\u0000-\u10ff\u2000-\u2319\u2400-\u25fc]*")
_ACTS = {
    "A": "_cursor_up", "B": "_cursor_down", "C": "_forward", "D": "_back", "E": "_next_line", "F": "_line_before",
    "G": "_column", "`": "_column", "H": "_move", "f": "_move", "J": "_erase_rows", "K": "_erase_row",
    "P": "_delete", "X": "_blank", "s": "_keep", "u": "_go_back",
}  # fmt: skip
_FILLER = "\0"  # the second column of a wide character


def steers(rest: bytes, data: bytes) -> bool:
    """Tell whether what comes behind the `rest` of a line moves the cursor; colours do not."""
    if b"\x1b" in rest:
        data = rest + data
    if b"\r" not in data and b"\x1b" not in data and b"\x08" not in data:
        return False
    return _STEERS.search(data) is not None


def rendered(text: str) -> str:
    """Return what a terminal shows after a whole text."""
    screen = Screen(reach=1 << 30)
    screen.write(text.encode("utf-8", "replace"))
    return "\n".join(screen.shown())


class Screen:
    """The last rows of one stream, which may still change; those above have left it for good."""

    def __init__(self, reach: int = REACH) -> None:
        self._rows = [""]
        self._x = self._y = 0
        self._kept = 0, 0
        self._reach = reach
        self._up = 0  # how far above the last row it was moved
        # it moved up from behind an ended line, as displays of several rows do at each change
        self._comes_back = False
        self._unknown = reach == REACH
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""  # of a sequence whose end has not come
        self._left: list[str] = []
        self.calm = 0

    def write(self, data: bytes, *, final: bool = False) -> list[str]:
        """Take what was written; return the rows that have left."""
        text = self._held + self._decoder.decode(data, final)
        self._held = ""
        unfinished = None if final else _UNFINISHED.search(text, max(0, len(text) - _HELD))
        if unfinished is not None:
            text, self._held = text[: unfinished.start()], unfinished.group()
        for piece in _PIECES.finditer(text):
            if (run := piece["run"]) is not None:
                self._put(run)
            elif (control := piece["control"]) is not None:
                self._control(control)
            elif (does := piece["does"]) is not None:
                self._sequence(does, piece["args"])
            elif (short := piece["short"]) is not None:
                self._short(short)
        self._bound()
        left, self._left = self._left, []
        return left

    def shown(self) -> list[str]:
        """Return the rows as they are now, without empty ones at the end."""
        rows = [row.replace(_FILLER, "").rstrip(" ") for row in self._rows]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    def settle(self) -> list[str]:
        """Give up the rows of lines that have ended, and return them; none if the program can come back to them.

        Called before the other stream writes: on a terminal its lines would be below these.
        """
        if self._comes_back or self._held or not (self._at_rest() or not self._up):
            return []
        rows = [row.replace(_FILLER, "").rstrip(" ") for row in self._rows[:-1]]
        self._rows, self._y, self._kept = self._rows[-1:], 0, (0, self._kept[1])
        return rows

    # -- what comes

    def _put(self, run: str) -> None:
        if not run.isascii() and not _NARROW.fullmatch(run):
            run = "".join(c + _FILLER if unicodedata.east_asian_width(c) in {"W", "F"} else c for c in run)
        while run:
            if self._x >= LONGEST:
                self._down(1)
                self._x = 0
            part = run[: LONGEST - self._x]
            self._place(part)
            run = run[len(part) :]

    def _place(self, run: str) -> None:
        row, x = self._rows[self._y], self._x
        end = x + len(run)
        if x > len(row):
            row = row.ljust(x)
        before, behind = row[:x], row[end:]
        if row[x : x + 1] == _FILLER:
            before = f"{before[:-1]} "
        if behind[:1] == _FILLER:
            behind = f" {behind[1:]}"
        self._rows[self._y] = before + run + behind
        self._x = end

    def _control(self, control: str) -> None:
        if control == "\n":
            self.calm += 1
            self._down(1)
            self._x = 0
        elif control == "\r":
            self.calm, self._x = 0, 0
        elif control == "\b":
            self.calm, self._x = 0, max(0, self._x - 1)
        elif control == "\t":
            self._put(" " * (8 - self._x % 8))

    def _sequence(self, does: str, args: str) -> None:
        if does == "m" or args[:1] in {"?", "<", "=", ">"}:
            return
        self.calm = 0
        act = _ACTS.get(does)
        if act is not None:
            getattr(self, act)(
                [min(int(n[:9]), COLUMNS) if n.isdecimal() else None for n in args.split(";", 3)]
            )

    def _short(self, short: str) -> None:
        if short == "7":
            self._keep([])
        elif short == "8":
            self._go_back([])
        elif short == "M":
            self._upwards(1)
        elif short in {"D", "E"}:
            self._control("\n")

    def _cursor_up(self, args: Sequence[int | None]) -> None:
        self._upwards(_count(args))

    def _cursor_down(self, args: Sequence[int | None]) -> None:
        self._down(min(_count(args), REACH_MOST))

    def _next_line(self, args: Sequence[int | None]) -> None:
        self._cursor_down(args)
        self._x = 0

    def _line_before(self, args: Sequence[int | None]) -> None:
        self._upwards(_count(args))
        self._x = 0

    def _column(self, args: Sequence[int | None]) -> None:
        self._x = _count(args) - 1

    def _move(self, args: Sequence[int | None]) -> None:
        # there is no screen whose corner that could be: it is that of the rows that may change
        self._y = min(_count(args), len(self._rows)) - 1
        self._x = _count(args[1:]) - 1

    def _forward(self, args: Sequence[int | None]) -> None:
        self._x = min(self._x + _count(args), COLUMNS)

    def _back(self, args: Sequence[int | None]) -> None:
        self._x = max(0, self._x - _count(args))

    def _delete(self, args: Sequence[int | None]) -> None:
        row = self._rows[self._y]
        self._rows[self._y] = row[: self._x] + row[self._x + _count(args) :]

    def _blank(self, args: Sequence[int | None]) -> None:
        row, n = self._rows[self._y], _count(args)
        self._rows[self._y] = row[: self._x].ljust(self._x) + " " * n + row[self._x + n :]

    def _keep(self, _args: Sequence[int | None]) -> None:
        self._kept = self._y, self._x

    def _go_back(self, _args: Sequence[int | None]) -> None:
        self._y, self._x = min(self._kept[0], len(self._rows) - 1), self._kept[1]

    # -- where it is

    def _at_rest(self) -> bool:
        return not self._x and self._y == len(self._rows) - 1 and not self._rows[-1].strip(" ")

    def _upwards(self, count: int) -> None:
        self._comes_back = self._comes_back or (self._at_rest() and not self._rows[-1])
        last = len(self._rows) - 1
        # further than there are rows: another time there will be
        self._up = max(self._up, min(last - self._y + count, REACH_MOST))
        self._reach = max(self._reach, self._up)
        self._y = max(0, self._y - count)

    def _down(self, count: int) -> None:
        for _ in range(count):
            self._y += 1
            if self._y < len(self._rows):
                continue
            self._rows.append("")
            if len(self._rows) > self._reach + 1:
                if self._unknown:
                    self._unknown, self._reach = False, max(1, self._up)
                self._leave(len(self._rows) - self._reach - 1)

    def _leave(self, count: int) -> None:
        self._left += [row.replace(_FILLER, "").rstrip(" ") for row in self._rows[:count]]
        del self._rows[:count]
        self._y = max(0, self._y - count)
        self._kept = max(0, self._kept[0] - count), self._kept[1]

    def _bound(self) -> None:
        """Have rows leave that are too much to be kept."""
        size = sum(map(len, self._rows))
        leave = 0
        while size > SIZE and leave < len(self._rows) - 1:
            size -= len(self._rows[leave])
            leave += 1
        if leave:
            self._leave(leave)

    def _erase_row(self, args: Sequence[int | None]) -> None:
        which, row = args[0] or 0, self._rows[self._y]
        if which == 0:
            self._rows[self._y] = row[: self._x]
        elif which == 1:
            self._rows[self._y] = " " * min(self._x + 1, len(row)) + row[self._x + 1 :]
        else:
            self._rows[self._y] = ""

    def _erase_rows(self, args: Sequence[int | None]) -> None:
        which = args[0] or 0
        if which == 0:
            self._erase_row(args)
            del self._rows[self._y + 1 :]
        elif which == 1:
            self._rows[: self._y] = [""] * self._y
            self._erase_row(args)
        else:
            self._rows = [""] * (self._y + 1)


def _count(args: Sequence[int | None]) -> int:
    return max(1, args[0] or 1) if args else 1

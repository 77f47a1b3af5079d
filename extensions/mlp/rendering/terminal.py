"""Display of a log's line: the one place of this package where output of programs becomes text to show.

The platform keeps the text that a terminal would show of output that moves its cursor. `STATE`
before a text means that it replaces all that the line had until then. `BREAK` is between rows of a
line that continues. Other output is shown as it is, without control characters. Carriage returns
and backspaces are of logs that an older version wrote.
"""

from __future__ import annotations

import re

STATE = "\r\x1b[J"
BREAK = "\x1b[E"
LINE_MAX = 65_536
"""Most characters that are kept of a line which had no end when it came."""
_STEERS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_TURNING = "\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_PLAIN = re.compile(rf"[^\x00-\x08\x0b-\x1f\x7f-\x9f{_TURNING}]*")


def joined(before: str, text: str) -> str:
    """Return a line that had no end with its continuation."""
    return text if text.startswith(STATE) else (before + text)[-LINE_MAX:]


def as_shown(text: str) -> str:
    """Return a line as its program wrote it, colours and all, without what is no longer there."""
    if STATE in text:
        text = text.rpartition(STATE)[2]
    return text.replace(BREAK, "\n") if BREAK in text else text


def plain(text: str) -> str:
    """Remove control characters for the reader's terminal, and changes of direction: a job wrote the text.

    Text that a progress bar overwrote is gone, as on a terminal.
    """
    if _PLAIN.fullmatch(text):
        return text
    text = _STEERS.sub("", as_shown(text))
    return "".join(
        c
        for c in "\n".join(map(_written_over, text.split("\n")))
        if c in "\n\t" or (ord(c) >= 32 and not 127 <= ord(c) < 160 and c not in _TURNING)
    )


def rows(text: str, before: str = "") -> str:
    """Return a line to show, each row of it with `before` in front."""
    shown = plain(text)
    return "\n".join(f"{before}{row}" for row in shown.split("\n")) if before else shown


def _written_over(line: str) -> str:
    """Return what a terminal shows of a line with carriage returns and backspaces."""
    if "\r" not in line and "\b" not in line:
        return line
    shown: list[str] = []
    at = 0
    for c in line:
        if c == "\r":
            at = 0
        elif c == "\b":
            at = max(0, at - 1)
        else:
            shown[at : at + 1] = c
            at += 1
    return "".join(shown)

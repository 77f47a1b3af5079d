"""Formats of a log: one line an event, as text or as JSON.

Users' names, paths and messages are in it. Control characters are escaped, so that nobody can forge a line, steer a
terminal or turn the direction of writing.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

from mlp_hub.domain.text import escaped
from mlp_hub.logs.concern import current

TEXT, JSON = "text", "json"
FORMATS = (TEXT, JSON)
"""Values of the setting `log_format`."""
FIELD_MOST = 256
"""Safety: characters of a user's or a job's name in a line."""


class TextLines(logging.Formatter):
    """One line an event: time, level, logger, request id in brackets if there is one, message.

    Line ends within are escaped. Lines of a traceback are indented by four blanks.
    """

    def __init__(self) -> None:
        self.converter = time.gmtime
        super().__init__(
            "%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s %(request)s%(message)s", "%Y-%m-%dT%H:%M:%S"
        )

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        request_id = current().request_id
        record.request = f"[{request_id}] " if request_id else ""
        return escaped(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        return "\n".join(f"    {escaped(line)}" for line in super().formatException(ei).split("\n"))


class JsonLines(logging.Formatter):
    """One JSON object a line: `time` (UTC), `level`, `logger`, `message`, and if known `request_id`, `user`, `job`, `exception`."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one event; text that is not ASCII is escaped, so that a line has no other line ends."""
        about = current()
        fields = {
            "time": stamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": about.request_id,
            "user": about.user[:FIELD_MOST],
            "job": about.job[:FIELD_MOST],
            "exception": self.formatException(record.exc_info) if record.exc_info else "",
            "stack": self.formatStack(record.stack_info) if record.stack_info else "",
        }
        line = json.dumps({name: value for name, value in fields.items() if value or name == "message"})
        return line.replace("\x7f", "\\u007f")  # the one control character that JSON leaves as it is


class WithoutPassing(logging.Filter):
    """Makes a warning of one line of an `Unavailable` that was logged as an exception: it passes, and no code is at fault.

    Tasks of a service that leads no more meet it until they are stopped, as do all while the database is away.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record where it tells of such an error; let all pass."""
        if record.exc_info and (error := record.exc_info[1]) is not None and _passes(error):
            record.msg, record.args = f"{record.getMessage()}: {error}", ()
            record.exc_info = record.exc_text = None
            record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
        return True


def _passes(error: BaseException) -> bool:
    from mlp_hub.domain.errors import Unavailable  # noqa: PLC0415 - a process that waits for files needs it at no other time

    return isinstance(error, Unavailable)


def stamp(at: float) -> str:
    """Return a time, in seconds since the epoch, as `2026-01-31T23:59:59.123Z`."""
    millis = int(at * 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(millis // 1000))}.{millis % 1000:03d}Z"


def formatter(kind: str) -> logging.Formatter:
    """Return the formatter for a value of the setting `log_format`."""
    return JsonLines() if kind == JSON else TextLines()


def set_up(level: str, kind: str) -> None:
    """Log to standard error, which the supervisor keeps and bounds."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter(kind))
    handler.addFilter(WithoutPassing())
    logging.basicConfig(level=level, handlers=[handler], force=True)

"""Log lines of the hub, which show text that others wrote."""

from __future__ import annotations

import logging
from typing import Any

from jupyterhub.log import CoroutineLogFormatter

from mlp_hub.domain.text import escaped
from mlp_hub.logs.concern import current
from mlp_hub.logs.lines import JSON, JsonLines


class SafeFormatter(CoroutineLogFormatter):  # type: ignore[misc]  # jupyterhub is untyped
    """Log format of the hub, in which a tenant's text cannot make a line or control a terminal.

    All lines of a message but its first are indented, which the base class does. A line of a request ends with its id.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Write one event."""
        first, *rest = super().format(record).split("\n")
        request_id = current().request_id
        shown = f"{escaped(first)} [{request_id}]" if request_id else escaped(first)
        return "\n".join([shown, *(escaped(line) for line in rest)])


class HubJsonLines(JsonLines):
    """JSON lines of the hub; JupyterHub gives the formatter its own format and date, which are unused."""

    def __init__(self, *_args: Any, **_options: Any) -> None:
        super().__init__()


def formatter_of(kind: str) -> type[logging.Formatter]:
    """Return the class of the hub's log formatter for a value of the setting `log_format`."""
    return HubJsonLines if kind == JSON else SafeFormatter

"""How the hub's log shows what others wrote."""

from __future__ import annotations

import logging

from jupyterhub.log import CoroutineLogFormatter

from mlp_hub.domain.text import escaped


class SafeFormatter(CoroutineLogFormatter):  # type: ignore[misc]  # jupyterhub is untyped
    """Log format of the hub, in which a tenant's text cannot make a line or control a terminal.

    All lines of a message but its first are indented, which the base class does.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Write one event."""
        return "\n".join(escaped(line) for line in super().format(record).split("\n"))

"""Counts a kernel that is at work, and a program in a terminal, as activity of their server, whether they put anything out or not.

Jupyter knows activity by messages alone: a long fit that prints nothing, its page closed, would be idle, and be culled with its server.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

from tornado.ioloop import PeriodicCallback

LOOK_S = 60.0
"""Tuning: seconds between two looks: less than a server waits before its next report to the hub."""
SETTING = "mlp_kernels_last_activity"
"""Given: the server counts every setting that ends so."""


def look(app: Any) -> None:
    """Note that the server is used now where a kernel or a terminal of it is at work."""
    if is_at_work(app):
        app.web_app.settings[SETTING] = datetime.now(UTC)


def is_at_work(app: Any) -> bool:
    """Whether a kernel of a server computes, or a program has a terminal of it."""
    kernels = app.kernel_manager.list_kernels()
    return any(kernel.get("execution_state") == "busy" for kernel in kernels) or _in_a_terminal(app)


def _in_a_terminal(app: Any) -> bool:
    """Whether a program has a terminal for itself, so that its shell waits for it."""
    manager = app.web_app.settings.get("terminal_manager")
    terminals = dict(getattr(manager, "terminals", None) or {})
    return any(_is_at_work(getattr(each, "ptyproc", None)) for each in terminals.values())


def _is_at_work(terminal: Any) -> bool:
    try:
        return os.tcgetpgrp(terminal.fd) not in {0, os.getpgid(terminal.pid)}
    except (AttributeError, OSError, ValueError):
        return False  # it has ended


def watch(app: Any) -> None:
    """Look now and then, as long as the server runs."""
    PeriodicCallback(lambda: look(app), LOOK_S * 1000).start()

"""Counts a kernel that is at work as activity of its server, whether it puts anything out or not.

Jupyter knows activity by messages alone: a long fit that prints nothing, its page closed, would be idle, and be culled with its server.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tornado.ioloop import PeriodicCallback

LOOK_S = 60.0
"""Tuning: seconds between two looks: less than a server waits before it tells the hub anew."""
SETTING = "mlp_kernels_last_activity"
"""Given: the server counts every setting that ends so."""


def look(app: Any) -> None:
    """Note that the server is used now where a kernel of it is at work."""
    if any(kernel.get("execution_state") == "busy" for kernel in app.kernel_manager.list_kernels()):
        app.web_app.settings[SETTING] = datetime.now(UTC)


def watch(app: Any) -> None:
    """Look now and then, as long as the server runs."""
    PeriodicCallback(lambda: look(app), LOOK_S * 1000).start()

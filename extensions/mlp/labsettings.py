"""Unreadable settings of JupyterLab count as not set: otherwise Lab's page stays empty without a reason.

A power cut or a full disk leaves such a file. It is written again when its user changes that
setting.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def tolerate(log: Any) -> None:
    """Let JupyterLab's server continue without unreadable settings, as it does without invalid ones."""
    try:
        served: Any = import_module("jupyterlab_server.settings_utils")
    except ImportError:  # a server without JupyterLab
        return
    read = served._get_user_settings  # noqa: SLF001

    def tolerant(folder: str, name: str, schema: Any) -> dict[str, Any]:
        try:
            return dict(read(folder, name, schema))
        except Exception as error:  # noqa: BLE001 - whatever lies there
            why = getattr(error, "log_message", None) or str(error)
            log.warning("mlp: %s; it counts as not set", why)
            return {"raw": "{}", "settings": {}, "warning": why, "last_modified": None, "created": None}

    served._get_user_settings = tolerant  # noqa: SLF001

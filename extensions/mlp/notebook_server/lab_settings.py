"""Unreadable settings of JupyterLab count as not set: otherwise Lab's page stays empty without a reason.

A power cut or a full disk leaves such a file. The next change of that setting by its user writes it again.
jupyterlab_server has no public way for this: `_get_user_settings` is private, and
`tests/unit/mlp/test_settings_of_jupyterlab.py` fails if that changes.
"""

from __future__ import annotations

import os
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
            path = f"{folder}/{name.replace(':', '/')}{served.SETTINGS_EXTENSION}"
            if os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113 - as a text
                raise OSError(f"{path} is not a file")  # noqa: TRY301 - to open a named pipe would hold the server up for ever
            return dict(read(folder, name, schema))
        except Exception as error:  # noqa: BLE001 - whatever lies there
            why = getattr(error, "log_message", None) or str(error)
            log.warning("mlp: %s; it counts as not set", why)
            return {"raw": "{}", "settings": {}, "warning": why, "last_modified": None, "created": None}

    served._get_user_settings = tolerant  # noqa: SLF001

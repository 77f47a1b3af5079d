"""The live job monitor for notebooks.

`JobMonitor` needs anywidget, which is imported only when it is asked for. The still picture that a saved notebook keeps
is `mlp.picture`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlp_widgets.monitor import JobMonitor

__all__ = ["JobMonitor"]


def __getattr__(name: str) -> Any:
    if name != "JobMonitor":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from mlp_widgets.monitor import JobMonitor  # noqa: PLC0415 - only who shows a widget needs anywidget
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in {"anywidget", "ipywidgets", "traitlets"}:
            raise
        raise ImportError(
            f"the live job monitor needs {error.name}, which is not installed here: "
            "pip install 'mlp-hub[notebook]' (or anywidget alone)",
            name=error.name,
        ) from error
    return JobMonitor

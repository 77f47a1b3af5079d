"""`JobMonitor` on the kernel's side."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import mlp_widgets

BUNDLE = Path(mlp_widgets.__file__).parent / "static" / "job_monitor.js"
built = pytest.mark.skipif(
    not BUNDLE.is_file(), reason="the front end is not built: npm run build in widgets/"
)


def test_without_anywidget_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "mlp_widgets.monitor", raising=False)
    monkeypatch.delattr(mlp_widgets, "monitor", raising=False)
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(ImportError, match=r"needs anywidget, .* pip install 'mlp-hub\[notebook\]'"):
        _ = mlp_widgets.JobMonitor


def test_unknown_names_are_refused_as_usual() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Monitor'"):
        _ = mlp_widgets.Monitor  # type: ignore[attr-defined]


@built
def test_a_monitor_carries_the_live_view_and_the_still_picture() -> None:
    monitor = mlp_widgets.JobMonitor("ann", "digits", snapshot={"job": {"name": "digits", "phase": "queued"}})
    made = monitor._repr_mimebundle_()
    assert made is not None
    data, _ = made
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == monitor.model_id
    assert data["text/plain"] == "digits  queued"
    assert "<b style" in data["text/html"]


@built
def test_what_the_browser_needs_is_synchronised() -> None:
    monitor = mlp_widgets.JobMonitor("ann", "digits", api="/hub-b/services/mlp/api/v1")
    state = monitor.get_state()
    assert {k: state[k] for k in ("user", "name", "api", "snapshot")} == {
        "user": "ann",
        "name": "digits",
        "api": "/hub-b/services/mlp/api/v1",
        "snapshot": {},
    }
    assert "data-lm-suppress-shortcuts" in state["_esm"]
    assert ".mlp-monitor" in state["_css"]

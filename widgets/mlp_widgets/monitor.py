"""`JobMonitor`: one job, live in a notebook cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import traitlets

from mlp import picture

STATIC = Path(__file__).parent / "static"


def _bundle(name: str) -> Path:
    path = STATIC / name
    if not path.is_file():
        raise ImportError(
            f"the front end is not built: {path} is missing. In a checkout run "
            "`npm ci && npm run build` in widgets/ (`make up` does it)"
        )
    return path


class JobMonitor(anywidget.AnyWidget):
    """A job's state, curves, ranks and log, live by the browser's own connection to the service.

    The kernel takes no part once the widget is shown: it may be busy, restart or die. `snapshot` is the picture of
    the job's last state; the browser renews it, a saved notebook keeps it, and it is what is shown (and drawn as HTML
    and text by `_repr_mimebundle_`) where no service answers.
    """

    _esm = _bundle("job_monitor.js")
    _css = _bundle("job_monitor.css")

    user = traitlets.Unicode(help="Whose job.").tag(sync=True)
    name = traitlets.Unicode(help="The job's name.").tag(sync=True)
    api = traitlets.Unicode(
        "/services/mlp/api/v1", help="REST base path or URL, as the browser sees it."
    ).tag(sync=True)
    snapshot = traitlets.Dict(
        help="The job's last known state: {job, why, events, curves, log, saved_at}."
    ).tag(sync=True)

    def __init__(
        self, user: str, name: str, api: str = "/services/mlp/api/v1", snapshot: dict[str, Any] | None = None
    ) -> None:
        """Show job `name` of `user`; `snapshot` may hold what is known already, at least `{"job": Job}`."""
        super().__init__(user=user, name=name, api=api, snapshot=snapshot or {})

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return the widget's view together with the still picture, for who cannot show widgets."""
        made = super()._repr_mimebundle_(**kwargs)
        if made is None:
            return None
        data, metadata = made if isinstance(made, tuple) else (made, {})
        still = dict(self.snapshot) or {"job": {"name": self.name, "user": self.user}}
        return {**data, "text/plain": picture.text(still), "text/html": picture.html(still)}, metadata

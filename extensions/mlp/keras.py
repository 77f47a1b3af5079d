"""Keras: `model.fit(..., callbacks=[mlp.keras.ReportCallback()])`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mlp.reporting import points

_keras: Any = import_module("keras")


class ReportCallback(_keras.callbacks.Callback):  # type: ignore[misc]
    """Report Keras' logs at the end of each epoch, with `epoch` and `progress`.

    `every` also reports the batch's logs after each `every` batches (0: never). Values that are not
    finite are left out, as in `mlp.report`.
    """

    def __init__(self, every: int = 0) -> None:
        super().__init__()
        self.every = every
        self._step = 0

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Report a batch when it is one's turn."""
        del batch
        self._step += 1
        if self.every and self._step % self.every == 0:
            points.report(step=self._step, **_own(logs))

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Report an epoch; epochs count from 1."""
        extra: dict[str, float] = {}
        epochs = (self.params or {}).get("epochs")
        if epochs:
            extra["progress"] = 100 * (epoch + 1) / epochs
        points.report(epoch=epoch + 1, **extra, **_own(logs))


def _own(logs: dict[str, Any] | None) -> dict[str, Any]:
    """Return Keras' logs without the names that have a meaning here; `mlp.report` handles other values."""
    return {k: v for k, v in (logs or {}).items() if k not in {"epoch", "step", "progress"}}

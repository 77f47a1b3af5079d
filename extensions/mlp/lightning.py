"""PyTorch Lightning: `Trainer(callbacks=[mlp.lightning.ReportCallback()])`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

try:
    _callbacks: Any = import_module("lightning.pytorch.callbacks")
except ImportError:
    _callbacks = import_module("pytorch_lightning.callbacks")

from mlp.reporting import points


class ReportCallback(_callbacks.Callback):  # type: ignore[misc]
    """Report what the module logs (`self.log`) at the end of each epoch, with `epoch`, `step` and `progress`."""

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Report an epoch; epochs count from 1."""
        del pl_module
        values: dict[str, Any] = dict(trainer.callback_metrics)  # what is no number is left to `mlp.report`
        done = trainer.current_epoch + 1
        if trainer.max_epochs and trainer.max_epochs > 0:
            values["progress"] = 100 * done / trainer.max_epochs
        values |= {"epoch": done, "step": trainer.global_step}
        points.report(**values)

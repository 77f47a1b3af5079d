"""First code in each Python of a job, before its program: draws TensorBoard's event files, unchanged.

The program needs no change. `mlp_job_start.pth` calls it, as the interpreter starts. A Python that
writes no event files pays one look-up for each import, and loads nothing of `mlp`. Errors here must
never stop a program.
"""

from __future__ import annotations

import atexit
import os
import sys

TYPE_CHECKING = False  # as `typing` has it, which is not loaded for it
if TYPE_CHECKING:
    from typing import Any

TARGETS = {
    "tensorboard.summary.writer.event_file_writer",  # torch.utils.tensorboard, Lightning, JAX
    "tensorboardX.event_file_writer",
    "tensorflow.python.ops.summary_ops_v2",  # tf.summary, Keras
}
"""Modules that write event files: the files that they open are read."""


class _Finder:
    """Import hook that finds nothing itself: it sees the modules that write event files come, and has them watched."""

    def __init__(self) -> None:
        self.waited = set(TARGETS)

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        """Return None for all but the modules that are waited for."""
        del path, target
        if name not in self.waited:
            return None
        self.waited.discard(name)
        try:
            from importlib.util import find_spec  # noqa: PLC0415 - few Pythons come here

            spec = find_spec(name)
            loader: Any = spec and spec.loader
            run = loader.exec_module
            loader.exec_module = lambda module: (run(module), _watch(module))
        except Exception:  # noqa: BLE001 - the program imports it without us
            return None
        return spec


def _watch(module: Any) -> None:
    try:
        from mlp import tensorboard  # noqa: PLC0415 - few Pythons come here

        tensorboard.patch(module)
    except Exception as error:  # noqa: BLE001 - a curve less, and a program that goes on
        sys.stderr.write(f"mlp: TensorBoard's event files are not drawn: {error}\n")


def _last() -> None:
    tensorboard = sys.modules.get("mlp.tensorboard")
    if tensorboard is not None:
        tensorboard.finish()


def begin() -> None:
    """Watch for writers of event files, unless the job's option says not to."""
    if os.environ.get("MLP_TENSORBOARD") == "off":
        return
    sys.meta_path.insert(0, _Finder())  # type: ignore[arg-type]
    # registered first, it runs last: after the writers have closed their files
    atexit.register(_last)

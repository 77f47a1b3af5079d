"""Output of cells: passed to the job's log as it comes, and kept in the executed copy, up to a limit."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode

from mlp.language import say

MOST_OF_CELL = 8_000_000
"""Limit of jobs: characters of the outputs of one cell that the copy of such a notebook contains."""
MOST_OUTPUTS = 32_000_000
"""Limit of jobs: characters of the outputs of all its cells."""
MOST_OF_ERROR = 100_000
"""Safety: characters of each part of a traceback that is kept."""


class CopiedOutputs:
    """How much is kept of each cell, and of all."""

    def __init__(self) -> None:
        self._all = 0
        self._of: dict[int, int] = {}
        self._lost: set[int] = set()

    def fitting(self, cell: int, kind: str, content: dict[str, Any]) -> dict[str, Any] | None:
        """Count an output, and return the part to keep: all, a text's beginning, or None."""
        if kind == "error":
            parts = [str(part)[-MOST_OF_ERROR:] for part in content.get("traceback", ())]
            return {**content, "evalue": str(content.get("evalue", ""))[:MOST_OF_ERROR], "traceback": parts}
        room = min(MOST_OF_CELL - self._of.get(cell, 0), MOST_OUTPUTS - self._all)
        if kind == "stream":
            content = {**content, "text": str(content.get("text", ""))[: max(room, 0)]}
            size = len(content["text"])
        else:
            size = len(json.dumps(content, default=str, ensure_ascii=False))
        if size > room or not size:
            return None
        self._of[cell] = self._of.get(cell, 0) + size
        self._all += size
        return content

    def cleared(self, cell: int) -> None:
        """Forget what a cell had put out: it has cleared it."""
        self._all -= self._of.pop(cell, 0)
        self._lost.discard(cell)

    def first_lost(self, cell: int) -> bool:
        """Whether nothing of this cell's was left out before."""
        if cell in self._lost:
            return False
        self._lost.add(cell)
        return True


class TellingClient(NotebookClient):
    """nbclient's, which tells what is put out while a cell runs."""

    def __init__(self, document: Any, listen: Callable[[], None], **options: Any) -> None:
        """Make it; `listen` is called when nbclient listens to signals, before the kernel starts."""
        super().__init__(document, **options)
        self._kept = CopiedOutputs()
        self._listen = listen
        self.ended_with: int | None = None  # the kernel's exit status, or minus the signal that ended it

    async def async_start_new_kernel(self, **options: Any) -> None:
        """Start the kernel, one of IPython with %mlp, as in the hub's notebook servers."""
        self._listen()
        if getattr(self.km, "ipykernel", False):
            self.extra_arguments = [
                *self.extra_arguments,
                "--InteractiveShellApp.extra_extensions=mlp",
                "--InteractiveShellApp.extra_extensions=mlp.crashes",
            ]
        await super().async_start_new_kernel(**options)

    async def _async_check_alive(self) -> None:
        try:
            await super()._async_check_alive()
        except DeadKernelError:
            provisioner = getattr(self.km, "provisioner", None)
            self.ended_with = getattr(getattr(provisioner, "process", None), "returncode", None)
            raise

    def clear_output(self, outs: Any, msg: Any, cell_index: int) -> None:
        """Forget what a cell clears."""
        super().clear_output(outs, msg, cell_index)
        if not outs:
            self._kept.cleared(cell_index)

    def output(self, outs: Any, msg: Any, display_id: Any, cell_index: int) -> Any:
        """Tell an output, and keep it where there is room."""
        kind, content = msg["msg_type"], msg["content"]
        _echo(kind, content)
        if self.clear_before_next_output:
            self._kept.cleared(cell_index)
        fitting = self._kept.fitting(cell_index, kind, content)
        found = None
        if fitting is not None:
            found = super().output(outs, {**msg, "content": fitting}, display_id, cell_index)
        cut = fitting is None or (kind == "stream" and len(fitting["text"]) < len(content["text"]))
        if cut and self._kept.first_lost(cell_index):
            said = say("More output than is kept here; printed output is in the job's log.")
            note = {"output_type": "stream", "name": "stderr", "text": f"\n{said}\n"}
            outs.append(NotebookNode(note))  # type: ignore[no-untyped-call,unused-ignore]
        return found


def _echo(kind: str, content: Any) -> None:
    """Write what a cell prints, and what its last line is, to the job's log."""
    if kind == "stream":
        out = sys.stderr if content.get("name") == "stderr" else sys.stdout
        out.write(str(content.get("text", "")))
    elif kind == "execute_result":
        sys.stdout.write(f"{content.get('data', {}).get('text/plain', '')}\n")

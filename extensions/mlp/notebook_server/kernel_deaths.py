"""Says in a notebook that its kernel was ended for lack of memory: Jupyter only says that it appears to have died.

The kernel of the machine counts what it killed in this server's sandbox; `MLP_MEMORY_EVENTS` names the file.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any, ClassVar

from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection

from mlp.language import say
from mlp.rendering.words import sentences


def kills(path: str | None) -> int:
    """Return how many processes were killed for lack of memory; 0 where nobody counts."""
    try:
        lines = Path(path).read_text().splitlines() if path else []
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


def sentence(limit: str | None) -> str:
    """Say what happened and what one can do; `limit` in bytes, as JupyterHub's MEM_LIMIT has it."""
    what = (
        say(
            "Out of memory: this kernel was ended. All notebooks and terminals of the notebook server together used more than its {n} MiB of memory.",
            n=int(limit) >> 20,
        )
        if limit and limit.isdecimal()
        else say(
            "Out of memory: this kernel was ended. All notebooks and terminals of the notebook server together used more than its memory."
        )
    )
    way_out = say(
        "The data in the kernel is lost. Shut down kernels that you do not need, start the server with more memory (File > Hub Control Panel > Stop My Server, then Start), or run this as a job: %%mlp submit --ram 8G"
    )
    return f"{sentences(what, way_out)}\n"


class Connection(ZMQChannelsWebsocketConnection):
    """The connection of one page to one kernel, which tells why that died in the cell that it ran."""

    path: ClassVar[str | None] = os.environ.get("MLP_MEMORY_EVENTS")
    explained: ClassVar[int] = kills(path)
    """Of all that were killed, those that a death of a kernel was explained with."""
    verdicts: ClassVar[dict[tuple[str, int | None], bool]] = {}
    _runs: dict[str, Any] | None = None

    def connect(self) -> Any:
        """Connect, and pass on all output kept for the page: Jupyter's rate limit is for present output."""
        limits, self.limit_rate = self.limit_rate, False
        connected = super().connect()

        def replayed(_: Any = None) -> None:
            self.limit_rate = limits

        if connected is None:
            replayed()
        else:
            connected.add_done_callback(replayed)
        return connected

    def handle_outgoing_message(self, stream: Any, outgoing_msg: list[Any]) -> None:
        """Note which request the kernel works on."""
        if getattr(stream, "channel", stream) == "iopub":
            _, (_, header, parent, _, content, *_) = self.session.feed_identities(outgoing_msg)
            if self.session.unpack(header)["msg_type"] == "status":
                self._note(self.session.unpack(parent), self.session.unpack(content)["execution_state"])
        super().handle_outgoing_message(stream, outgoing_msg)

    def _note(self, request: dict[str, Any], state: str) -> None:
        if request.get("msg_type") != "execute_request":
            return
        if state == "busy":
            self._runs = request
        elif self._runs is not None and self._runs["msg_id"] == request["msg_id"]:
            self._runs = None

    def on_kernel_restarted(self) -> None:
        """Tell it before the page forgets what the kernel worked on."""
        self._explain()
        super().on_kernel_restarted()  # type: ignore[no-untyped-call]

    def on_restart_failed(self) -> None:
        """Tell it of a kernel that will not come back too."""
        self._explain()
        super().on_restart_failed()  # type: ignore[no-untyped-call]

    def _explain(self) -> None:
        if self._out_of_memory():
            iopub = self.channels.get("iopub")
            if iopub and not iopub.closed():
                iopub.flush()  # what it wrote before comes before
            self.write_stderr(sentence(os.environ.get("MEM_LIMIT")), self._runs or {})  # type: ignore[no-untyped-call]
        self._runs = None

    def _out_of_memory(self) -> bool:
        """Tell whether the kernel that has just died was killed for lack of memory; the same to each page that shows it."""
        provisioner = self.kernel_manager.provisioner
        process = getattr(provisioner, "process", None)
        which = (str(self.kernel_id), getattr(provisioner, "pid", None))
        if which not in self.verdicts:
            count = kills(self.path)
            killed = process is not None and process.poll() == -signal.SIGKILL
            self.verdicts[which] = killed and count > self.explained
            if killed:
                type(self).explained = count
        return self.verdicts[which]


def watch(app: Any) -> None:
    """Have the server connect pages this way, unless it was told another one."""
    settings = app.web_app.settings
    if settings.get("kernel_websocket_connection_class") is ZMQChannelsWebsocketConnection:
        settings["kernel_websocket_connection_class"] = Connection

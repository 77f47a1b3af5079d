"""Where the things of one notebook server lie; pure."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from mlp_language.message import msg
from mlp_spawner.errors import OptionsError

_USER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}")


@dataclass(frozen=True, slots=True)
class Paths:
    """Paths of one server, all on the hub's machine."""

    state_dir: Path  # servers-run
    socket_dir: Path  # where only the platform may look
    user: str
    server: str  # empty for the user's only one

    def __post_init__(self) -> None:
        if not _USER.fullmatch(self.user):
            raise OptionsError(
                msg(
                    "the user name {name} cannot be the name of a directory: no server can be started",
                    name=repr(self.user),
                )
            )

    @property
    def user_dir(self) -> Path:
        """All servers' of one user."""
        return self.state_dir / self.user

    @property
    def run_dir(self) -> Path:
        """The sandbox's run directory; `-` cannot be the name of a server."""
        return self.user_dir / (self.server or "-")

    @property
    def log_dir(self) -> Path:
        """Where the server's output goes; beside the run directory, so that it outlives a failed start."""
        return self.user_dir / f"{self.server or '-'}.log"

    @property
    def ended_file(self) -> Path:
        """File about the end of the last server for its user; it exists until the next one has started."""
        return self.user_dir / f"{self.server or '-'}.ended.json"

    @property
    def placed_file(self) -> Path:
        """Which samples the user ever got."""
        return self.user_dir / "samples.json"

    @property
    def socket(self) -> Path:
        """The server's socket. Short, because a socket's path has at most 107 bytes."""
        digest = hashlib.sha256(f"{self.user}/{self.server}".encode()).digest()
        return self.socket_dir / f"{base64.b32encode(digest)[:9].decode().lower()}.sock"

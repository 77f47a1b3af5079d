"""A server on a UNIX socket that listens before the server is there."""

from __future__ import annotations

import socket

from cheroot import wsgi


class SocketServer(wsgi.Server):
    """A server that takes the UNIX socket which listens already, where it is given one, or listens at its address."""

    listening: socket.socket | None = None

    def bind_unix_socket(self, bind_addr: str) -> socket.socket:
        """Take the socket that it was given: cheroot's own would remove the path first, and be missing until it has bound."""
        if self.listening is None:
            raise OSError(f"nothing listens at {bind_addr}")
        self.socket = self.listening
        return self.listening

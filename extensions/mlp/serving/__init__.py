"""Program in a replica of an app: a model server, or a command with a relay to it.

The model server has the Open Inference Protocol. The program needs only the standard library; a
model's further needs are imported when that model is loaded. It listens on the socket that the
platform passed in (MLP_LISTEN_FD), at the UNIX socket MLP_APP_SOCKET, or at TCP MLP_APP_PORT
without either. With MLP_APP_KEY it answers only clients that know it.
"""

from __future__ import annotations

from mlp.serving.launch import main

__all__ = ["main"]

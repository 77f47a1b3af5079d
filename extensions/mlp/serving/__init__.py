"""What runs in a replica of an app: a server of a model by the Open Inference Protocol, or a command with a relay to it.

It stands in the standard library alone; what a model needs besides is imported when that model is loaded. It listens on what the
platform handed in (MLP_LISTEN_FD), at the UNIX socket MLP_APP_SOCKET, or at TCP MLP_APP_PORT where there is neither; with
MLP_APP_KEY to those alone who know that.
"""

from __future__ import annotations

from mlp.serving.launch import main

__all__ = ["main"]

"""Starts JupyterHub: `python -m mlp_hub.hubside -f FILE`, in half of its usual time."""

from __future__ import annotations

import os
import sys

IDLE_S = 300.0
BODY_BYTES = 4 * 1024 * 1024
BODY_TIMEOUT_S = 120.0


def main() -> None:
    """Run JupyterHub without the grammar of internationalised addresses.

    jsonschema takes it along, where it is installed, for a format that no schema of the hub uses. Building it
    costs more than all the rest of the start: a second of processor time, and 16 MB.
    """
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # means: not installed
    from jupyterhub.app import JupyterHub  # noqa: PLC0415

    from mlp_hub.hubside.log import SafeFormatter  # noqa: PLC0415

    JupyterHub._log_formatter_cls = SafeFormatter  # noqa: SLF001 - the hub has no public way
    _bound_connections()
    JupyterHub.launch_instance()


def _bound_connections() -> None:
    """Have the hub's HTTP server hold so many connections of one tenant, and wait for no request for ever."""
    from tornado.httpserver import HTTPServer  # noqa: PLC0415

    from mlp_hub.api.connections import Gate, GuardedServer, raise_descriptors  # noqa: PLC0415
    from mlp_hub.settings import Settings  # noqa: PLC0415

    gate = Gate(Settings.load(os.environ).connections_per_user, raise_descriptors() // 4)
    HTTPServer.configure(
        GuardedServer,
        gate=gate,
        idle_connection_timeout=IDLE_S,
        body_timeout=BODY_TIMEOUT_S,
        max_body_size=BODY_BYTES,
    )


if __name__ == "__main__":
    main()

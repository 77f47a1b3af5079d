"""The process: `python -m mlp_hub.dav`. It serves datasets' files once somebody asks for any; until then it is small."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from mlp_hub.backends import backend_of
from mlp_hub.dav.access_client import AccessClient
from mlp_hub.dav.connections.first_request import FirstClients, until_asked
from mlp_hub.logs import lines
from mlp_hub.settings import Settings, SettingsError

log = logging.getLogger("mlp_hub.dav")


def main() -> int:
    """Serve as the settings say."""
    lines.set_up("INFO", os.environ.get("MLP_LOG_FORMAT", lines.TEXT))
    try:
        settings = Settings.load(os.environ)
        service = AccessClient(settings.service_at, settings.secret("data_token"))
        pods, sandboxes = backend_of(settings).data_listens(settings), settings.tenant_data_socket
        tenants: list[Path | tuple[str, int]] = [sandboxes] if pods is None else [sandboxes, pods]
        # pods read what they start with here: where there are any, it is asked for soon
        asked = FirstClients() if pods is not None else until_asked(settings.data_socket, sandboxes, service)
        from mlp_hub.dav import serving  # noqa: PLC0415 - most of the process, and of no use before somebody asks

        serving.run(settings, service, tenants, asked)
    except (SettingsError, OSError) as error:
        log.error("files cannot be served: %s", error)  # noqa: TRY400 - the cause is all there is to say
        return 1
    return 0


if __name__ == "__main__":
    status = main()
    logging.shutdown()
    os._exit(status)  # no thread that waits for a client keeps it: what is not whole was never in place

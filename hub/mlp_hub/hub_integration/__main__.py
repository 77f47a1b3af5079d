"""Starts JupyterHub: `python -m mlp_hub.hub_integration -f FILE`, in half of its usual time."""

from __future__ import annotations

import functools
import os
import sys

from mlp_hub.gc_tuning import while_importing


def main() -> None:
    """Run JupyterHub without the grammar of internationalised addresses.

    jsonschema takes it along, where it is installed, for a format that no schema of the hub uses. Building it
    costs more than all the rest of the start: a second of processor time, and 16 MB.
    """
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # means: not installed
    with while_importing():
        from jupyterhub import orm, traitlets  # noqa: PLC0415
        from jupyterhub.app import JupyterHub  # noqa: PLC0415

        from mlp_hub.hub_integration import auth_state, database, server, starting, turn  # noqa: PLC0415
        from mlp_hub.hub_integration.accounts import logins, recording  # noqa: PLC0415
        from mlp_hub.hub_integration.log import formatter_of  # noqa: PLC0415
        from mlp_hub.hub_integration.pages import language_page, leaving, recent, token_page  # noqa: PLC0415
        from mlp_hub.hub_integration.tokens import cli_login, tokens  # noqa: PLC0415
        from mlp_hub.settings import Settings  # noqa: PLC0415

    # asked for a dozen times, for help that nobody reads; each time it reads what all installed packages say of themselves
    traitlets.entry_points = functools.cache(traitlets.entry_points)
    settings = Settings.load(os.environ)
    JupyterHub._log_formatter_cls = formatter_of(settings.log_format)  # noqa: SLF001 - the hub has no public way
    server.install(settings)
    # thousands of rounds protect what a person thought of; the tokens that we configure are 256 random bits, and every
    # request of the service would pay for it
    orm.APIToken.rounds = 1
    database.install()
    logins.install()
    auth_state.install()
    leaving.install(settings.origins)
    starting.install()
    recording.install(settings)
    tokens.install(settings)  # inside of the question for a recent login
    cli_login.install(settings)
    if settings.login_cli_client_id:
        from mlp_hub.hub_integration.providers.login import device  # noqa: PLC0415 - loads what reads signatures

        device.install(settings)
    recent.install(settings)
    language_page.install(settings)
    token_page.install(settings)
    turn.install(settings)
    turn.take(settings)
    JupyterHub.launch_instance()


if __name__ == "__main__":
    main()

"""`mlp-hub upgrade`: brings both databases to this version, and starts the hub again if it ran."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from mlp_hub.cli.backups.upgrade import bring
from mlp_hub.cli.errors import CommandFailed
from mlp_hub.cli.lifecycle import up
from mlp_hub.cli.state import belonging, database, identity, state_dir
from mlp_hub.cli.supervisor import processes
from mlp_hub.settings import Settings
from mlp_language.render import say


def upgrade(settings: Settings, environ: Mapping[str, str], *, check: bool) -> int:
    """Bring both databases to this version, and start the hub again if it ran.

    With `check` nothing is done; the status is 1 where there is something to do.
    """
    if not settings.secrets_dir.is_dir():
        raise CommandFailed(
            say("{home} has no state.", home=str(settings.home)), say("`mlp-hub up` makes a new one.")
        )
    with state_dir.exclusive(settings, _say):
        if (
            identity.own(settings) is not None
        ):  # a copy that `up` has not made a hub of its own is not looked into
            belonging.check(settings)
        todo = database.changes(settings)
        for change in todo:
            _say(f"{'To do' if check else 'Does'}: {change}")
        if not todo:
            _say("Both databases are of this version; there is nothing to do")
        if check or not todo:
            return 1 if todo else 0
        ran = processes.find(settings, "supervisor") is not None
        _say(bring(settings))
    return up.up(settings, environ) if ran else 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()

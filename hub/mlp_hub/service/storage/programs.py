"""Texts of scripts as they lie in homes."""

from __future__ import annotations

from mlp_hub.domain.errors import Refused
from mlp_hub.executors.workspace import Home, Workspace

MOST_PROGRAM = 262_144
"""Safety: bytes of a script of which the text is kept with the run; of a longer one nothing is."""


async def program_of(workspace: Workspace, user: str, entry: str) -> str | None:
    """Return the text of a script in a user's home; None where it cannot be read, is too long or no text."""
    try:
        opened = await workspace.open_file(Home(user), entry)
    except Refused:
        return None
    try:
        if opened.size > MOST_PROGRAM:
            return None
        data = await opened.read(0, MOST_PROGRAM)
    finally:
        opened.close()
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None

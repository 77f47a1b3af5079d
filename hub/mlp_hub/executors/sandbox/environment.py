"""Which directories a Python environment needs inside a sandbox."""

from __future__ import annotations

from mlp_hub.executors.sandbox.spec import Bind


def environment_binds(python: str) -> tuple[Bind, ...]:
    """List what the environment of this interpreter consists of, read-only, at the same paths inside.

    That is its prefix, the base interpreter's prefix where it is not below /usr, and the directories of
    editable installs. Remembered per interpreter for the life of the process.
    """
    raise NotImplementedError

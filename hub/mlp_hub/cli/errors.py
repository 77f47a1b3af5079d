"""Errors of the operator's command: the fault, the way out, and the exit status.

Failure(msg, remedy)          status 1: something that should work did not
├── UsageFailure              status 2: the command line or a setting cannot be
└── MachineFailure            status 3: the machine lacks or denies something
"""

from __future__ import annotations


class CommandFailed(Exception):  # noqa: N818 - the root of the tree
    """A command that cannot do what it was asked to."""

    status = 1

    def __init__(self, msg: str, remedy: str = "", details: str = "") -> None:
        super().__init__(msg)
        self.msg = msg
        self.remedy = remedy
        self.details = details

    def text(self) -> str:
        """Return all of it as the person is shown it."""
        return "\n".join(part for part in (self.details, self.msg, self.remedy) if part)


class UsageFailure(CommandFailed):
    """The command line or a setting cannot be."""

    status = 2


class MachineFailure(CommandFailed):
    """This machine lacks or denies something."""

    status = 3


class AwayFailure(CommandFailed):
    """A part of the hub, or its database, does not answer now; the same command may succeed in a moment."""

    status = 4

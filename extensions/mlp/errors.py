"""One tree of errors for all that a user imports.

    MLPError
    ├── UsageError (ValueError)      what was written is wrong; nothing was sent
    │   └── ProgramError             the program's text is no Python
    ├── Refused(reason)              the platform says no: quota, rights, name, state; `reason` is of a closed set
    │   ├── InvalidRequest           a value of the request is wrong: another one may do
    │   ├── WrongState               the object is not in a state for it now: later it may be
    │   ├── NotThere                 there is no such object, for who asks
    │   ├── Conflict                 the name, or the key of the request, is taken
    │   └── NotAllowed               who asks may not: a right is missing
    ├── Unauthorized                 no token, or one that is not valid any more
    ├── Unreachable                  the service does not answer, or answers only with faults
    ├── TransferFailed               some files of a dataset did not go or come whole; said again, it goes on
    ├── JobFailed(job)               a job that was waited for did not finish well
    └── JobTimeout (TimeoutError)    a job that was waited for goes on after the time given

In a notebook each shows as one sentence, without a traceback of our own code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from mlp.language import say

if TYPE_CHECKING:
    from mlp.handle import Job
    from mlp.sweeping import Sweep


class MLPError(Exception):
    """Root of this package's errors."""

    @property
    def label(self) -> str:
        """What it is, in a word or two."""
        return say("Error")

    def _render_traceback_(self) -> list[str]:
        """Tell IPython what to show in place of a traceback."""
        return [say("{what}: {why}", what=self.label, why=str(self))]


class UsageError(MLPError, ValueError):
    """What was written is wrong; the message names the value and what would be right."""

    @property
    def label(self) -> str:
        """What it is, in a word or two."""
        return say("Usage")


class ProgramError(UsageError):
    """The program cannot start, because its text is no Python; the message shows the line."""

    @property
    def label(self) -> str:
        """What it is, in a word or two."""
        return say("Syntax error")


class Refused(MLPError):  # noqa: N818 - the word of the contract
    """The platform refused the request and changed nothing."""

    def __new__(cls, reason: str, msg: str) -> Self:
        """Make the kind of it that its reason names, where there is one."""
        kind: type[Self] = _KINDS.get(reason, cls) if cls is Refused else cls
        return super().__new__(kind, reason, msg)

    def __init__(self, reason: str, msg: str) -> None:
        super().__init__(msg)
        self.reason = reason
        self.msg = msg

    def __reduce__(self) -> tuple[Any, ...]:
        """Tell how it is made anew, in another process."""
        return type(self), (self.reason, self.msg)

    @property
    def label(self) -> str:
        """The typed reason stands before the sentence."""
        return say("Refused ({reason})", reason=self.reason)


class InvalidRequest(Refused):
    """A value of the request is wrong; the message names it and what would be right."""


class WrongState(Refused):
    """The object is not in a state for this now."""


class NotThere(Refused):
    """There is no such object, for who asks."""


class Conflict(Refused):
    """The name, or the key of the request, is taken."""


class NotAllowed(Refused):
    """A right is missing."""


_KINDS: dict[str, Any] = {
    "Invalid": InvalidRequest,
    "WrongState": WrongState,
    "NotFound": NotThere,
    "Conflict": Conflict,
    "Forbidden": NotAllowed,
}


class Unauthorized(MLPError):  # noqa: N818 - names the condition, as HTTP does
    """There is no token, or it is not valid (any more)."""

    @property
    def label(self) -> str:
        """What it is, in a word or two."""
        return say("Not logged in")


class Unreachable(MLPError):  # noqa: N818 - names the condition
    """The service could not be reached, or could not answer."""

    @property
    def label(self) -> str:
        """What it is, in a word or two."""
        return say("Unreachable")


class TransferFailed(MLPError):  # noqa: N818 - what happened
    """Some files of a dataset did not go or come whole; what is there stays, and the same said again goes on."""

    @property
    def label(self) -> str:
        """What it is, in a word or two."""
        return say("Not whole")


class TransferStopped(TransferFailed):
    """Somebody stopped it."""


class JobFailed(MLPError):  # noqa: N818 - what happened
    """The job ended without having finished; `job` has the details."""

    @property
    def label(self) -> str:
        """What it is, in a word or two."""
        return say("Job failed")

    def __init__(self, job: Job | Sweep, msg: str) -> None:
        super().__init__(msg)
        self.job = job


class JobTimeout(MLPError, TimeoutError):  # noqa: N818 - what happened
    """The job was still going when the given time was over; it goes on."""

    @property
    def label(self) -> str:
        """What it is, in a word or two."""
        return say("Still going")

    def __init__(self, job: Job, msg: str) -> None:
        super().__init__(msg)
        self.job = job

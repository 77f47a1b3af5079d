"""One tree of errors for all that a user imports.

    MLPError
    ├── UsageError (ValueError)      the input is wrong; nothing was sent
    │   └── ProgramError             the program's text is not Python
    ├── Refused(reason)              the platform refuses: quota, rights, name, state; `reason` is of a closed set
    │   ├── InvalidRequest           a value of the request is wrong: another one can work
    │   ├── WrongState               the object is not in a state for it now: it can be later
    │   ├── NotThere                 the object does not exist, for the asker
    │   ├── Conflict                 the name, or the key of the request, is taken
    │   └── NotAllowed               the asker has no right to it
    ├── Unauthorized                 no token, or one that is not valid any more
    ├── Unreachable                  the service does not answer, or answers only with faults
    │   └── NoHub                    another server answers there
    ├── TransferFailed               some files of a dataset are incomplete; the same call again continues
    ├── JobFailed(job)               an awaited job did not finish well
    └── JobTimeout (TimeoutError)    an awaited job continues after the time given

In a notebook each shows as one sentence, without a traceback of our own code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from mlp.language import say

if TYPE_CHECKING:
    from mlp.handles.job import Job
    from mlp.handles.sweeping import Sweep


class MLPError(Exception):
    """Root of this package's errors.

    `request_id` is the id of the request that failed, which the operator finds in the logs of the hub; empty: none is known.
    """

    request_id = ""

    @property
    def traced(self) -> str:
        """The line with the request's id, for the operator; empty where none is known."""
        return say("Request {id}", id=self.request_id) if self.request_id else ""

    @property
    def label(self) -> str:
        """Kind of the error, in a word or two."""
        return say("Error")

    def _render_traceback_(self) -> list[str]:
        """Tell IPython what to show in place of a traceback."""
        shown = say("{what}: {why}", what=self.label, why=str(self))
        return [shown, self.traced] if self.traced else [shown]


class UsageError(MLPError, ValueError):
    """Wrong input; the message names the value and a correct one."""

    @property
    def label(self) -> str:
        """Kind of the error, in a word or two."""
        return say("Wrong input")


class ProgramError(UsageError):
    """Program that cannot start, because its text is not Python; the message shows the line."""

    @property
    def label(self) -> str:
        """Kind of the error, in a word or two."""
        return say("Syntax error")


class Refused(MLPError):  # noqa: N818 - the word of the contract
    """The platform refused the request and changed nothing."""

    def __new__(cls, reason: str, msg: str) -> Self:
        """Make the kind of it that its reason names, where there is one."""
        kind: type[Self] = _KINDS.get(reason, cls) if cls is Refused else cls
        made: Self = super().__new__(kind, reason, msg)
        return made

    def __init__(self, reason: str, msg: str) -> None:
        super().__init__(msg)
        self.reason = reason
        self.msg = msg

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the data to make it again, in another process."""
        return type(self), (self.reason, self.msg), self.__dict__

    @property
    def label(self) -> str:
        """Typed reason, shown before the sentence."""
        return say("Refused ({reason})", reason=self.reason)


class InvalidRequest(Refused):
    """A value of the request is wrong; the message names it and what would be right."""


class WrongState(Refused):
    """The object is not in a state for this now."""


class NotThere(Refused):
    """Object that does not exist, for the asker."""


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
    """Missing token, or one that is not valid (any more)."""

    @property
    def label(self) -> str:
        """Kind of the error, in a word or two."""
        return say("Not logged in")


class Unreachable(MLPError):  # noqa: N818 - names the condition
    """The service could not be reached, or could not answer."""

    @property
    def label(self) -> str:
        """Kind of the error, in a word or two."""
        return say("Unreachable")


class NoHub(Unreachable):
    """Server at this address that is not a hub, and will not become one later."""


class TransferFailed(MLPError):  # noqa: N818 - what happened
    """Incomplete files of a dataset; the complete ones stay, and the same call again continues."""

    @property
    def label(self) -> str:
        """Kind of the error, in a word or two."""
        return say("Incomplete")


class TransferStopped(TransferFailed):
    """Somebody stopped it."""


class JobFailed(MLPError):  # noqa: N818 - what happened
    """The job ended without having finished; `job` has the details."""

    @property
    def label(self) -> str:
        """Kind of the error, in a word or two."""
        return say("Job failed")

    def __init__(self, job: Job | Sweep, msg: str) -> None:
        super().__init__(msg)
        self.job = job


class JobTimeout(MLPError, TimeoutError):  # noqa: N818 - what happened
    """Job that had not ended when the given time was over; it continues."""

    @property
    def label(self) -> str:
        """Kind of the error, in a word or two."""
        return say("Still running")

    def __init__(self, job: Job, msg: str) -> None:
        super().__init__(msg)
        self.job = job

"""Errors between a person's click on Start and a server that answers.

OptionsError        an invalid option of the form or the API
ServiceRefused      the platform's service refused, with a reason; answered as the spawn page's refusal
ServiceUnreachable  the service cannot be asked now; no server is started without it
ServerRefused       no server for a reason of policy; the spawn page shows it
ServerFailed        no server through no choice of its user; the spawn page shows it
"""

from __future__ import annotations

from tornado import web

from mlp_language.message import Message, msg, verbatim
from mlp_language.render import plain

try:
    from jupyterhub.spawner import SpawnException

    REFUSALS_COUNT = False
    """Whether the hub counts refusals as its failures, of which several in a row end it."""
except ImportError:  # JupyterHub 5, to which the platform can be attached
    REFUSALS_COUNT = True

    class SpawnException(web.HTTPError):  # type: ignore[no-redef]
        """Refusal by policy, as JupyterHub 6 has it; earlier hubs look at the status only."""

        def __init__(self, message: str, *, reason: str, log_message: str, status_code: int) -> None:
            super().__init__(status_code, log_message, reason=reason)
            self.message = message

        def __str__(self) -> str:
            return self.message


class Told(str):
    """The English text of a message, for logs and programs; pages tell its `message` in their reader's language."""

    __slots__ = ("message",)
    message: Message

    @classmethod
    def from_message(cls, message: Message) -> Told:
        """Make it of a message."""
        made = cls(plain(message))
        made.message = message
        return made


class OptionsError(ValueError):
    """An option that is unknown or out of its limits; the message names value, limit and way out."""

    def __init__(self, message: Message) -> None:
        super().__init__(plain(message))
        self.message = message


class ServiceRefused(Exception):  # noqa: N818 - the word of the contract
    """Refusal of the service; `msg` is for people, `reason` is one of the contract's.

    `retry_after`: the request waits, keeps its place, and can be repeated within that number of
    seconds.
    """

    def __init__(self, msg: str, reason: str, retry_after: float | None = None) -> None:
        super().__init__(f"{reason}: {msg}")
        self.msg = msg
        self.reason = reason
        self.retry_after = retry_after


class ServiceUnreachable(Exception):  # noqa: N818 - names the condition
    """No answer from the service, or one that says that it cannot answer now."""


class ServerFailed(web.HTTPError):
    """The server could not be started, through no choice of its user; shown on the spawn page."""

    def __init__(self, message: Message) -> None:
        text = Told.from_message(message)
        super().__init__(500, text.replace("%", "%%"))
        self.jupyterhub_message = text


class ServerRefused(SpawnException):  # type: ignore[misc]  # jupyterhub is untyped
    """No server for a reason of policy: an option, the quota, a service that cannot be asked."""

    def __init__(self, message: Message, reason: str, status_code: int = 403) -> None:
        text = Told.from_message(message)
        # HTTPError takes what it logs for a format
        super().__init__(text, reason=reason, log_message=text.replace("%", "%%"), status_code=status_code)
        self.jupyterhub_message = text


def sentence(text: str | Message) -> Message:
    """End with a full stop, as a page shows it; user and tenant names stay as they are."""
    if isinstance(text, Message):
        return msg("{text}.", text=text)
    text = text.strip()
    return verbatim(text) if text.endswith((".", "?", "\u3002", "\uff1f")) else msg("{text}.", text=text)

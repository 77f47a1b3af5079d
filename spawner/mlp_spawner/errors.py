"""What goes wrong between a person's click on Start and a server that answers.

OptionsError        an option of the form or the API that cannot be
ServiceRefused      the platform's service said no, with a reason; answered as the spawn page's refusal
ServiceUnreachable  the service cannot be asked now; no server is started without it
"""

from __future__ import annotations


class OptionsError(ValueError):
    """An option that is unknown or out of its limits; the message names value, limit and way out."""


class ServiceRefused(Exception):  # noqa: N818 - the word of the contract
    """The service's refusal. `msg` is for people, `reason` is one of the contract's.

    `retry_after`: room is being made, and it may be asked again in so many seconds, or before.
    """

    def __init__(self, msg: str, reason: str, retry_after: float | None = None) -> None:
        super().__init__(f"{reason}: {msg}")
        self.msg = msg
        self.reason = reason
        self.retry_after = retry_after


class ServiceUnreachable(Exception):  # noqa: N818 - names the condition
    """No answer from the service, or one that says that it cannot answer now."""

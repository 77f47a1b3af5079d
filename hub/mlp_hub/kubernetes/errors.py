"""Errors of a cluster's API."""

from __future__ import annotations

import re
from typing import Any

from mlp_hub.domain.errors import MessageError, OutOfReach
from mlp_language.message import msg


class ClusterUnreachable(OutOfReach):
    """The API does not answer, or says that it cannot now; asking again helps once it does."""

    def __init__(self, host: str, why: str) -> None:
        super().__init__(msg("the cluster at {host} does not answer: {why}", host=host, why=why))


class WebhookUnreachable(ClusterUnreachable):
    """The API answers, and asks a webhook that does not; asking again helps once that does."""

    def __init__(self, host: str, webhook: str, why: str) -> None:
        OutOfReach.__init__(
            self,
            msg(
                "the cluster accepts no such object now: its webhook {webhook} does not answer: {why}",
                webhook=webhook,
                why=why,
            ),
        )
        self.host = host


class ClusterError(MessageError):
    """The API refused. `status` is HTTP's, `reason` the API's own, such as `Invalid`."""

    def __init__(self, asked: str, status: int, reason: str, said: str, body: dict[str, Any]) -> None:
        super().__init__(
            msg(
                "the cluster refused to {asked} ({status} {reason}): {said}",
                asked=asked,
                status=status,
                reason=reason,
                said=said,
            )
        )
        self.status, self.reason, self.said, self.body = status, reason, said, body


class ForbiddenError(ClusterError):
    """The hub may not, or an admission refused; `said` names the verb and the resource, or what refused."""

    @property
    def rights(self) -> bool:
        """Whether the hub's account lacks a right; else something that looks at the object itself said no."""
        return _LACKS_RIGHT.search(self.said) is not None

    @property
    def passes(self) -> bool:
        """Whether the object is not at fault: the account lacks a right, the namespace is just being removed or just made."""
        causes = (self.body.get("details") or {}).get("causes") or ()
        removed = any(cause.get("reason") == "NamespaceTerminating" for cause in causes)
        return self.rights or removed or "status unknown for quota" in self.said


class InvalidObjectError(ClusterError):
    """Error of the object itself, in the part that `said` names; a retry cannot help."""


class MissingObjectError(ClusterError):
    """Error for a missing object, or a missing kind of objects."""


class ConflictingObjectError(ClusterError):
    """It is there already, has changed meanwhile, or has fields that another manager owns."""


class ExpiredWatchError(ClusterError):
    """Error for a watch that cannot continue from its version: list again."""


_LACKS_RIGHT = re.compile(r'User "[^"]*" cannot \S+ resource')
_AT_FAULT = re.compile(
    r"failed to create typed (patch|live|new) object|admission webhook \"[^\"]*\" denied the request"
)
"""Given: texts of the API's error 500 where an applied object does not fit its schema.

The same holds for a webhook that refused, with any status.
"""
_WEBHOOK = re.compile(r"failed calling webhook \"([^\"]+)\": (?:failed to call webhook: )?(.*)", re.DOTALL)
"""Given: how the API says that a webhook does not answer."""
_PASSING = frozenset({429, 500, 502, 503, 504})
_BY_STATUS = {
    400: InvalidObjectError,
    403: ForbiddenError,
    404: MissingObjectError,
    409: ConflictingObjectError,
    410: ExpiredWatchError,
    413: InvalidObjectError,
    422: InvalidObjectError,
}


def error_of(asked: str, status: int, body: Any, host: str = "") -> ClusterError | ClusterUnreachable:
    """Make the error of an answer, whose body is mostly a `Status`.

    Most faults of the server pass: a webhook that does not answer, an overload, a store without a leader.
    """
    body = body if isinstance(body, dict) else {"message": str(body)}
    said = str(body.get("message", ""))
    made = _BY_STATUS.get(status, ClusterError)
    if status in _PASSING:
        if found := _WEBHOOK.search(said):
            return WebhookUnreachable(host, found[1], found[2])
        if not _AT_FAULT.search(said):
            return ClusterUnreachable(host, said or f"HTTP {status}")
        made = InvalidObjectError
    return made(asked, status, str(body.get("reason", "")), said, body)

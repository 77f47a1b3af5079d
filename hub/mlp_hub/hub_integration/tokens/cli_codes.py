"""One-time codes by which `mlp login` gets its token: the allowed requests, and the binding of a code.

A browser brings the code to a port of the machine that asked (RFC 8252), or a person types it in.
It is useless without the verifier whose digest came with the request (RFC 7636, S256).
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from base64 import urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from mlp_language.message import Message, msg

BROUGHT_S = 60.0
"""Safety: seconds that a code holds which a browser brings: bounds the use of one that leaked."""
TYPED_S = 300.0
"""Safety: seconds that a code holds which a person types in: the same, with time to do it."""
KEPT = 1_000
"""Safety: codes that are kept; the oldest is forgotten first: bounds memory."""
KEPT_OF_ONE = 10
"""Safety: codes of one person that are kept: nobody pushes others' out."""
DAYS, DAYS_MOST = 30, 365
SPENT = msg("this code is not valid, or was used, or is too old: run `mlp login` again")

_LOOPBACK = re.compile(r"http://(127\.0\.0\.1|\[::1\]):([1-9][0-9]{0,4})/")
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
_STATE = re.compile(r"[A-Za-z0-9_-]{16,128}")
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_MACHINE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")


@dataclass(eq=False)
class Wrong(Exception):  # noqa: N818 - what happened
    """A request that cannot be one of `mlp login`, or a code that gives nothing."""

    message: Message

    def __str__(self) -> str:
        return str(self.message)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of `mlp login`. Without `redirect_uri` the code is shown, and typed in."""

    challenge: str
    machine: str
    redirect_uri: str = ""
    state: str = ""
    days: int = DAYS

    @classmethod
    def from_fields(cls, given: Callable[[str], str]) -> Asked:
        """Read one from the fields of a page; raises Wrong that names the field."""
        if not _CHALLENGE.fullmatch(given("challenge")):
            raise Wrong(msg("challenge is missing or not a SHA-256 digest: run `mlp login` again"))
        machine, days = machine_and_days(given)
        redirect_uri, state = given("redirect_uri"), given("state")
        if redirect_uri and not is_loopback(redirect_uri):
            raise Wrong(
                msg(
                    "redirect_uri is not on the machine of the request; write {one} or {other}",
                    one="http://127.0.0.1:PORT/",
                    other="http://[::1]:PORT/",
                )
            )
        if redirect_uri and not _STATE.fullmatch(state):
            raise Wrong(msg("state is missing or not random text: run `mlp login` again"))
        return cls(given("challenge"), machine, redirect_uri, state, days)


@dataclass(frozen=True, slots=True)
class Granted:
    """Grant of a code; `session_mark` changes when all sessions of the user are ended."""

    user: str
    session_mark: str
    asked: Asked
    until: float


class Codes:
    """The codes that may still be traded in, by their digests. A hub that restarts has none. `clock` gives monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._codes: OrderedDict[str, Granted] = OrderedDict()

    def make(self, user: str, session_mark: str, asked: Asked) -> str:
        """Make a code of a person who said yes."""
        now = self._clock()
        for digest in [d for d, granted in self._codes.items() if granted.until <= now]:
            del self._codes[digest]
        mine = [d for d, granted in self._codes.items() if granted.user == user]
        for digest in mine[: len(mine) - KEPT_OF_ONE + 1] if len(mine) >= KEPT_OF_ONE else []:
            del self._codes[digest]
        if len(self._codes) >= KEPT:
            self._codes.popitem(last=False)
        code = secrets.token_urlsafe(32)
        lasts = BROUGHT_S if asked.redirect_uri else TYPED_S
        self._codes[_digest(code)] = Granted(user, session_mark, asked, now + lasts)
        return code

    def redeem_code(self, code: str, verifier: str, redirect_uri: str) -> Granted:
        """Return the grant of a code, once; raise Wrong without naming the wrong part.

        A code that is shown with another's verifier has leaked, and becomes invalid.
        """
        granted = self._codes.pop(_digest(code), None)
        if (
            granted is None
            or granted.until <= self._clock()
            or granted.asked.redirect_uri != redirect_uri
            or not _VERIFIER.fullmatch(verifier)
            or not hmac.compare_digest(challenge_of(verifier), granted.asked.challenge)
        ):
            raise Wrong(SPENT)
        return granted


def machine_and_days(given: Callable[[str], str]) -> tuple[str, int]:
    """Read for which machine a token is, and for how many days; raises Wrong that names the field."""
    machine, days = given("machine"), given("days") or str(DAYS)
    if not _MACHINE.fullmatch(machine):
        raise Wrong(msg("machine is missing or not a name of a machine: run `mlp login` again"))
    if not (days.isascii() and days.isdigit() and 1 <= int(days[:9]) <= DAYS_MOST):
        raise Wrong(
            msg("days is {days}; a token is valid for 1 to {most} days", days=days[:20], most=DAYS_MOST)
        )
    return machine, int(days[:9])


def is_loopback(uri: str) -> bool:
    """Whether an address is a port of the machine that the browser runs on, written in the one way we take."""
    found = _LOOPBACK.fullmatch(uri)
    return found is not None and int(found[2]) <= 65535


def challenge_of(verifier: str) -> str:
    """Return the S256 challenge of a verifier."""
    return urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()

"""Identification of callers: by a hub token, a job's own token, or a session's cookie.

The hub's answer about a token is cached for 3 seconds. So a revoked token works no longer than
that, on open sockets too. When the hub is down, a cached answer holds for its time. After that the
answer is 503, not 401. A token that can only read metrics is accepted for some minutes more.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol

from tornado.httputil import HTTPHeaders, parse_cookie

from mlp_hub.api.auth.principal import CallerKind, Principal
from mlp_hub.api.auth.scopes import ACCESS, JOBS_READ, JOBS_WRITE, METRICS_READ, SCOPES
from mlp_hub.api.auth.sessions import Sessions, xsrf_matches
from mlp_hub.domain.errors import Reason, Refused, Unavailable
from mlp_hub.domain.tenants.service_account import is_service
from mlp_hub.service.lifecycle.job_tokens import PREFIX as JOB_TOKEN_PREFIX
from mlp_language.message import msg

POSITIVE_S = 3.0
"""Tuning: seconds that a token is believed without asking the hub again: how soon a withdrawn one ends, for fewer questions to
the hub."""
NEGATIVE_S = 1.0
"""Tuning: seconds that an unknown token is refused without asking the hub again: how soon a new one works, for fewer questions
to the hub."""
OUTAGE_S = 600.0
"""Tuning: seconds that a token that only reads metrics is believed while the hub is away: metrics of an outage, for how soon a withdrawn
one ends."""
REMEMBERED = 20_000
"""Safety: tokens that are remembered: bounds memory, whoever tries many."""
TOKEN_LONGEST = 1024
"""Safety: characters of a token; a longer string is not a token, and is neither remembered nor checked."""
JOB_SCOPES = frozenset({JOBS_READ, JOBS_WRITE})
_OF_SCRAPERS = frozenset({ACCESS, "access:services", METRICS_READ})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "WS"})


class Unauthorized(Exception):  # noqa: N818 - the name of the HTTP status it becomes
    """No token, or one that is not valid; answered as 401 and never with more detail."""


class TooMany(Exception):  # noqa: N818 - names the condition
    """Asked too often; answered as 429."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"again in {retry_after} s")
        self.retry_after = retry_after


class Hub(Protocol):
    """Part of the hub that identification needs."""

    async def user_of_token(self, token: str) -> Principal | None:
        """Tell who a token belongs to."""
        ...


JobOfToken = Callable[[str], Awaitable[tuple[str, str, str] | None]]
Seen = Callable[[Principal], Awaitable[None]]
Stands = Callable[[Principal], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Credential:
    """A token and where it came from; `session` is the cookie's id when a cookie brought it."""

    token: str
    session: str = ""


class Authenticator:
    """Authenticator that turns credentials into principals, and remembers them for moments.

    `seen` is called with each user that was looked up, so that the platform knows their number and
    their groups. `used` is called with each token that was used, and its address. The last callback
    decides for an account of a tenant whether this token of it is accepted.
    """

    def __init__(
        self,
        hub: Hub,
        job_of_token: JobOfToken,
        sessions: Sessions,
        clock: Callable[[], float],
        *,
        seen: Seen | None = None,
        allow_lookup: Callable[[str], int] | None = None,
        used: Callable[[Principal, bytes, str], None] = lambda _, __, ___: None,
        stands: Stands | None = None,
    ) -> None:
        self._hub = hub
        self._job_of_token = job_of_token
        self._sessions = sessions
        self._clock = clock
        self._seen = seen
        self._allow_lookup = allow_lookup
        self._used = used
        self._stands = stands
        self._cache: OrderedDict[bytes, tuple[float, Principal | None]] = OrderedDict()
        self._good: OrderedDict[bytes, None] = OrderedDict()
        self._flying: dict[bytes, asyncio.Task[Principal | None]] = {}

    async def credential(self, headers: HTTPHeaders) -> Credential:
        """Find the credential of a request; raise Unauthorized when there is none.

        A header goes before a cookie: a client that sends both means the header.
        """
        header = headers.get("Authorization", "")
        if header:
            scheme, _, token = header.partition(" ")
            token = token.strip()
            if scheme.lower() not in ("bearer", "token") or not is_token(token):
                raise Unauthorized
            return Credential(token)
        raw = headers.get("Cookie", "")
        name = self._sessions.cookie
        session = await self._sessions.get(parse_cookie(raw).get(name, "")) if name in raw else None
        if session is None:
            raise Unauthorized
        return Credential(session.token, session.id)

    async def identify(self, credential: Credential, address: str = "", *, again: bool = False) -> Principal:
        """Return the owner of a credential; raise Unauthorized, TooMany or Unavailable.

        `again`: the credential was admitted before. A check of it is then not a guess, however many others
        guess from its address.
        """
        # a session's token is the service's own, wherever its browser is
        principal = await self._of_token(
            credential.token, address, told=not credential.session, limited=not again
        )
        if principal is None:
            if credential.session:
                await self._sessions.end(credential.session)
            raise Unauthorized
        if credential.session:
            return replace(principal, session=credential.session)
        return principal

    async def identify_new(self, token: str) -> Principal | None:
        """Say who a token that the hub gave just now belongs to."""
        return await self._look_up(token, _key(token))

    def forget(self, token: str) -> None:
        """Ask the hub again at the next use of this token."""
        self._cache.pop(_key(token), None)

    def forget_user(self, name: str) -> None:
        """Ask the hub again at the next use of any token of this user, whose sessions were ended."""
        for key, (_, principal) in list(self._cache.items()):
            if principal is not None and principal.kind is CallerKind.USER and principal.name == name:
                del self._cache[key]

    async def stands(self, credential: Credential) -> bool:
        """Tell whether the session of a credential has not ended; without one it is the token alone that counts."""
        return not credential.session or await self._sessions.get(credential.session) is not None

    async def _of_token(self, token: str, address: str, *, told: bool, limited: bool) -> Principal | None:
        key = _key(token)
        known = self._cache.get(key)
        if known is not None and self._clock() < known[0]:
            return known[1]
        if limited and key not in self._good and self._allow_lookup is not None:
            wait = self._allow_lookup(address)
            if wait:
                raise TooMany(wait)
        task = self._flying.get(key)
        if task is None:
            task = asyncio.create_task(self._look_up(token, key))
            self._flying[key] = task
            task.add_done_callback(lambda _: self._flying.pop(key, None))
        # one caller who goes away must not cancel the answer of the others
        try:
            principal = await asyncio.shield(task)
        except Unavailable:
            principal = self._in_an_outage(known)
            if principal is None:
                raise
        if principal is not None and told:
            self._used(principal, key, address)
        return principal

    def _in_an_outage(self, known: tuple[float, Principal | None] | None) -> Principal | None:
        """Return the owner of a scraper's token though the hub cannot be asked: monitoring must show that the hub is away.

        Such a token can read metrics and nothing else.
        """
        if known is None or known[1] is None or self._clock() >= known[0] + OUTAGE_S:
            return None
        principal = known[1]
        held = principal.scopes | (principal.own_scopes & SCOPES.keys())
        return principal if METRICS_READ in held and held <= _OF_SCRAPERS else None

    async def _look_up(self, token: str, key: bytes) -> Principal | None:
        principal: Principal | None = None
        if token.startswith(JOB_TOKEN_PREFIX):  # the hub is never shown a job's token
            found = await self._job_of_token(hashlib.sha256(token.encode()).hexdigest())
            if found is not None:
                user, job, _ = found
                principal = Principal(CallerKind.JOB, user, JOB_SCOPES, job=job)
        else:
            principal = await self._hub.user_of_token(token)
            if principal is not None and is_service(principal.name) and self._stands is not None:
                principal = principal if await self._stands(principal) else None
            if principal is not None and principal.kind is CallerKind.USER and self._seen is not None:
                await self._seen(principal)
        self._remember(key, principal)
        return principal

    def _remember(self, key: bytes, principal: Principal | None) -> None:
        self._cache.pop(key, None)
        self._cache[key] = (self._clock() + (NEGATIVE_S if principal is None else POSITIVE_S), principal)
        if len(self._cache) > REMEMBERED:
            self._cache.popitem(last=False)
        self._good.pop(key, None)
        if principal is not None:
            self._good[key] = None
            if len(self._good) > REMEMBERED:
                self._good.popitem(last=False)


def check_browser(headers: HTTPHeaders, method: str, principal: Principal, query_token: str = "") -> None:
    """Refuse what another site makes a browser send; only requests that a cookie authenticated are concerned."""
    if not principal.session:
        return
    site = headers.get("Sec-Fetch-Site", "same-origin")
    if site not in ("same-origin", "none"):
        raise Refused(Reason.FORBIDDEN, msg("requests from another site are refused"))
    if method in SAFE_METHODS:
        return
    given = headers.get("X-XSRFToken") or query_token
    if not given or not xsrf_matches(principal.session, given):
        raise Refused(
            Reason.FORBIDDEN,
            msg("the X-XSRFToken header is missing or not this session's; GET /session returns it"),
        )


def is_token(text: str) -> bool:
    """Tell whether a text can be a token, and can therefore be sent in a header."""
    return 0 < len(text) <= TOKEN_LONGEST and text.isascii() and text.isprintable()


def may_enter(principal: Principal) -> bool:
    """Tell whether a hub token was made for this platform at all: another service's was not."""
    return (
        principal.kind is not CallerKind.USER
        or ACCESS in principal.scopes
        or "access:services" in principal.scopes
    )


def _key(token: str) -> bytes:
    return hashlib.blake2b(token.encode(), digest_size=16).digest()

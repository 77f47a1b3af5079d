"""Tokens of the hub for people: none has more rights than its asker, and the audit log has each.

JupyterHub compares a new token with its owner only. A token with the right to make tokens, and no
other right, could make one with all rights.
"""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import dataclass
from datetime import UTC
from functools import wraps
from typing import Any

from jupyterhub import orm
from jupyterhub.apihandlers.users import UserTokenAPIHandler, UserTokenListAPIHandler
from jupyterhub.scopes import _intersect_expanded_scopes, get_scopes_for, needs_scope
from jupyterhub.utils import isoformat
from tornado import web

from mlp_hub.api.auth.lesser_tokens import lasts_no_longer, left_of, may_no_more
from mlp_hub.api.edge.limits import Limiter, Rate
from mlp_hub.domain.text import escaped, storable
from mlp_hub.hub_integration.accounts import outbox
from mlp_hub.hub_integration.accounts.outbox import DELIVERY
from mlp_hub.hub_integration.configure import SERVICE
from mlp_hub.hub_integration.pages.language import said
from mlp_hub.settings import Settings
from mlp_hub.unix_sockets import url_of
from mlp_language.message import Message, msg
from mlp_spawner.errors import ServiceRefused, ServiceUnreachable
from mlp_spawner.quota.service_client import ServiceClient

SLACK_S = 60
"""Seconds that a token may hold longer by its request: the time that it took to make; it is taken off again."""
NOTE_MAX = 1000
"""Limit of requests: characters of the note of a token."""
LASTS_MAX = 100 * 365 * 86_400
"""Safety: seconds that a token may hold: a time that databases can store."""
LISTED_MAX = {"roles": 10, "scopes": 500}
"""Safety: most entries in a request for a token. The hub answers nobody while it checks each; 5000 roles took 8 seconds."""
RATES = {"made": Rate(0.1, 500)}
"""Safety: tokens that one person makes, as the API's `change`: each is a line of the audit log."""
HELD_MAX = 1000
"""Limit of requests: tokens of one person."""
_limiter = Limiter(time.monotonic, RATES)


def install(settings: Settings) -> None:
    """Have each token compared with its asker's rights, and recorded, before anybody gets it."""
    service = ServiceClient(url_of(settings.service_at), settings.secret("spawner_token"))
    post = UserTokenListAPIHandler.post

    @wraps(post)
    async def told(self: Any, user_name: str) -> None:
        _check(self)
        _bound(self)
        await post(self, user_name)
        asked = self.current_user
        if self.get_status() != 201 or (asked.kind, asked.name) == ("service", SERVICE):
            return  # the platform's service writes down itself what it asks for
        answer = json.loads(b"".join(self._write_buffer))  # not sent yet
        token = orm.APIToken.find(self.db, answer["token"])
        scopes = sorted(token.scopes)
        if refusal := _why_not(self, token):
            take_back(self.db, token)
            raise web.HTTPError(403, said(self, refusal))
        if asked.kind == "user" and not asked.admin and (many := too_many(self.db, token.user)):
            take_back(self.db, token)
            raise TooManyTokens(many, said(self, many.message))
        try:
            await service.token_made(
                user_name,
                actor=asked.name,
                note=_line(token.note or "", 255),
                scopes="all scopes of the user" if scopes == ["inherit"] else _line(", ".join(scopes), 1000),
                expires=isoformat(token.expires_at) or "never",
            )
        except (ServiceUnreachable, ServiceRefused) as error:
            self.log.warning("A token for %s is not written down, so it is not given: %s", user_name, error)
            take_back(self.db, token)
            raise web.HTTPError(
                503, "No token was made: the platform's service does not answer, try again"
            ) from error

    UserTokenListAPIHandler.post = told
    delete = UserTokenAPIHandler.delete

    @wraps(delete)
    async def ended(self: Any, user_name: str, token_id: str) -> None:
        user, asked = self.find_user(user_name), self.current_user
        if user is None or (asked.kind, asked.name) == ("service", SERVICE):
            delete(
                self, user_name, token_id
            )  # the service records its own requests; of no user there is no token
            return
        self.find_token_by_id(user, token_id)  # of a token that is not there nothing is written down
        fields = {"actor": asked.name, "note": _note(self, user, token_id), "token": token_id}
        told = outbox.news("token_ended", user_name, **fields)
        if not await DELIVERY.tell(self.db, told):
            # it is ended all the same, with its entry for later: who revokes one does not wait for the log
            self.find_token_by_id(user, token_id)  # somebody else may have ended it meanwhile
            outbox.keep(self.db, told)
            delete(self, user_name, token_id)
            return
        delete(self, user_name, token_id)
        with contextlib.suppress(ServiceUnreachable, ServiceRefused):  # it asks the hub again soon by itself
            await service.token_ended(user_name, **fields, recorded=True)

    # nobody without the right to end a token writes into the log
    UserTokenAPIHandler.delete = needs_scope("tokens")(ended)


@dataclass(frozen=True, slots=True)
class TokenBound:
    """Why somebody gets no further token; `wait` in seconds, 0 where no time helps."""

    message: Message
    wait: int = 0


class TooManyTokens(web.HTTPError):
    """Somebody makes more tokens than one person may."""

    def __init__(self, bounded: TokenBound, text: str) -> None:
        super().__init__(429, text)
        self.headers = {"Retry-After": str(bounded.wait)} if bounded.wait else {}


def too_many(db: Any, user: Any) -> TokenBound | None:
    """Count a token that a person makes; say why it is one too many. `user` is JupyterHub's row of theirs."""
    held = db.query(orm.APIToken).filter(
        orm.APIToken.user_id == user.id, orm.APIToken.client_id == "jupyterhub"
    )
    if held.count() > HELD_MAX:
        return TokenBound(
            msg("you have {most} tokens, which is the most; revoke some of them", most=HELD_MAX)
        )
    if wait := _limiter.take_token("made", user.name):
        return TokenBound(msg("you make too many tokens; make the next one in {wait} s", wait=wait), wait)
    return None


def take_back(db: Any, token: Any) -> None:
    """Delete a token that was made and is not given to anybody."""
    db.delete(token)
    db.commit()


def _note(handler: Any, user: Any, token_id: str) -> str:
    """Return what a token is for, as its maker wrote it or its application is called."""
    with contextlib.suppress(web.HTTPError):
        token = handler.find_token_by_id(user, token_id)
        client = getattr(token.oauth_client, "description", "") if token.client_id != "jupyterhub" else ""
        return _line(token.note or client or "", 255)
    return ""


def _check(handler: Any) -> None:
    """Refuse what no database holds, and lists that JupyterHub would work on for long. Raises `web.HTTPError`."""
    body = handler.get_json_body()
    asked = body if isinstance(body, dict) else {}
    note, lasts = asked.get("note"), asked.get("expires_in")
    if note is not None and not (isinstance(note, str) and len(note) <= NOTE_MAX and storable(note)):
        why = msg(
            "note must be a text of at most {n} characters; leave out NUL and halves of surrogate pairs",
            n=NOTE_MAX,
        )
        raise web.HTTPError(400, said(handler, why))
    if isinstance(lasts, int) and lasts > LASTS_MAX:
        raise web.HTTPError(400, said(handler, msg("expires_in must be at most {n} seconds", n=LASTS_MAX)))
    for name, most in LISTED_MAX.items():
        if isinstance(listed := asked.get(name), list) and len(listed) > most:
            why = msg(
                "{name} has {count} entries; name at most {most}", name=name, count=len(listed), most=most
            )
            raise web.HTTPError(400, said(handler, why))


def _bound(handler: Any) -> None:
    """Have a token for which no time is asked hold as long as the one that it is asked for with."""
    left, asked = _left(handler), handler.get_json_body()
    if left is not None and (asked is None or (isinstance(asked, dict) and asked.get("expires_in") is None)):
        handler.request.body = json.dumps({**(asked or {}), "expires_in": left}).encode()


def _left(handler: Any) -> int | None:
    """Return for how many seconds the token that asks holds; None where none asks, or it holds for ever."""
    ends = handler.get_token().expires_at if getattr(handler, "_token_authenticated", False) else None
    return left_of(None if ends is None else ends.replace(tzinfo=UTC).timestamp(), time.time())


def _why_not(handler: Any, token: Any) -> Message | None:
    """Say what a new token may more, or how much longer, than the one it was asked for with; None where no token asked."""
    if not getattr(handler, "_token_authenticated", False):
        return None
    wanted = get_scopes_for(token)
    if refusal := may_no_more(
        wanted, _intersect_expanded_scopes(wanted, handler.expanded_scopes, handler.db)
    ):
        return refusal
    left, ends = _left(handler), token.expires_at
    lasts = None if ends is None else ends.replace(tzinfo=UTC).timestamp() - time.time()
    refusal = lasts_no_longer(lasts, left, SLACK_S)
    if refusal is None and left is not None:
        # no chain gains what each link took to make
        token.expires_at = min(ends, handler.get_token().expires_at)
        handler.db.commit()
    return refusal


def _line(text: str, most: int) -> str:
    return " ".join(escaped(text).split())[:most]

"""Tokens: the permission to make one, its owner, and its record."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta

from mlp_api.accounts.users import (
    AccountChange,
    TokenAsk,
    TokenCreate,
    TokenEnded,
    TokenGiven,
    TokenInfo,
    TokenMade,
    TokenUse,
)
from mlp_hub.api.auth.lesser_tokens import lasts_no_longer, left_of, may_no_more
from mlp_hub.api.auth.principal import CallerKind
from mlp_hub.api.auth.scopes import ACCESS, LEDGER_WRITE, OPERATOR, SCOPES, SPAWNER, USERS_READ, USERS_WRITE
from mlp_hub.api.edge.call import Call, Reply
from mlp_hub.api.edge.paging import ListPage, listed_by
from mlp_hub.api.hubclient import HubToken
from mlp_hub.api.resources.accounts.identity import note_once
from mlp_hub.api.routes import Relation, Route
from mlp_hub.domain.errors import Reason, Refused, Unavailable, not_found
from mlp_language.message import msg

TOKEN_LIFETIME_S = 30 * 24 * 3600
"""Limit of requests: seconds that a token is valid, if it was requested with another token and without a time."""


ENDS_SOON_S = 5 * 24 * 3600
"""Tuning: seconds before its end in which a token counts as ending soon: time to make another, for how often one is told."""


async def token(call: Call) -> str:
    """Return a new token of the user with no more scopes than the caller's token, for 30 days at most.

    A browser's session never gets one, because a script of another page could ask for one too.
    """
    given = await make(call, TokenAsk(note="asked for through MLP Hub's API"))
    return given.token


async def create(call: Call) -> TokenGiven:
    """Make a token that may do no more, and holds no longer, than the one that asks for it."""
    return await make(call, call.body)


async def make(call: Call, asked: TokenAsk) -> TokenGiven:
    """Make a token for its user's program."""
    _may_make(call)
    wanted = _held(call) if asked.scopes is None else _within(call, asked.scopes)
    now = call.service.clock()
    expires_in = await _lasting(call, asked.expires_in, now)
    made = await _new_token(
        call, TokenCreate(note=asked.note, scopes=[ACCESS, *wanted], expires_in=expires_in)
    )
    until = datetime.fromtimestamp(now, UTC) + timedelta(seconds=expires_in)
    return TokenGiven(token=made, note=asked.note, scopes=_platforms(wanted), expires=until)


def _may_make(call: Call) -> None:
    principal = call.principal
    if principal.session:
        # whatever page a script runs in: people make theirs by a click on the hub's own page, which no script opens for them
        raise Refused(
            Reason.FORBIDDEN,
            msg(
                "in a browser, make tokens on the page {hub_prefix}/token; here only programs that have a token get another one",
                hub_prefix=call.service.config.hub_prefix,
            ),
        )
    if principal.kind is not CallerKind.USER or principal.name != call.user:
        # an admin must not become somebody else: what they do is done in their own name
        raise Refused(
            Reason.FORBIDDEN, msg("a token is given to its user only; an operator uses `mlp-hub token`")
        )


def _held(call: Call) -> list[str]:
    """Return the platform's scopes of the asking token; a scope for its own user only stays so."""
    principal = call.principal
    everywhere = principal.scopes & set(SCOPES)
    own = (principal.own_scopes & set(SCOPES)) - everywhere
    return [*sorted(everywhere), *(f"{scope}!user={principal.name}" for scope in sorted(own))]


def _within(call: Call, asked: list[str]) -> list[str]:
    """Return what was asked for, as the asking token holds it; refuse what it does not hold."""
    if unknown := sorted(set(asked) - set(SCOPES)):
        text = msg(
            "scope {scope} does not exist; scopes are {scopes}", scope=unknown[0], scopes=tuple(SCOPES)
        )
        raise Refused(Reason.INVALID, text)
    held = {scope.partition("!")[0]: scope for scope in _held(call)}
    if refusal := may_no_more(asked, held):
        raise Refused(Reason.FORBIDDEN, refusal)
    return [held[scope] for scope in sorted(set(asked))]


async def _lasting(call: Call, asked: int | None, now: float) -> int:
    """Return for how long a token is made: never longer than the one that asks for it holds."""
    lasts = TOKEN_LIFETIME_S if asked is None else asked
    known = await call.service.hub.tokens(call.user, logins=True)
    maker = next((one for one in known if one.id == call.principal.token_id), None)
    left = None if maker is None or maker.expires_at is None else left_of(maker.expires_at.timestamp(), now)
    if asked is not None and (refusal := lasts_no_longer(asked, left)):
        raise Refused(Reason.INVALID, refusal)
    return lasts if left is None else min(lasts, left)


class TokensPage(ListPage, forbid_unknown_fields=True):
    """Which tokens, the newest first."""


async def list_(call: Call) -> Reply:
    """List a user's tokens, the newest first, without those of logins in browsers, which end with a logout."""
    found = await call.service.hub.tokens(call.user)
    uses = await call.service.uses.uses_of(call.user, [one.id for one in found])
    told = sorted((shown(call, one, uses.get(one.id)) for one in found), key=_newest_first)
    return listed_by(call, told, _newest_first, call.query)


def _newest_first(one: TokenInfo) -> str:
    """Return a key that is smaller the newer a token is, and no other's."""
    age = 10**12 - (one.created.timestamp() if one.created else 0.0)
    return f"{age:020.6f} {one.id}"


def shown(call: Call, one: HubToken, use: tuple[str, float] | None) -> TokenInfo:
    """Tell of a token what may be told: not what it is."""
    # the hub gives ids again: what was noted before this token was made is of another one
    begun = one.created.timestamp() if one.created else 0.0
    left = one.expires_at.timestamp() - call.service.clock() if one.expires_at else None
    address, since = use if use is not None and use[1] >= begun else ("", 0.0)
    used = one.last_activity
    if since and (used is None or used.timestamp() < since):
        used = datetime.fromtimestamp(since, UTC)  # the hub notes a use some minutes apart
    return TokenInfo(
        id=one.id,
        note=one.note or "",
        scopes=_platforms(one.scopes),
        created=one.created,
        expires=one.expires_at,
        last_used=used,
        last_from=address,
        current=one.id == call.principal.token_id,
        ends_soon=left is not None and left < ENDS_SOON_S,
    )


def _platforms(scopes: list[str]) -> list[str]:
    return sorted({scope.partition("!")[0] for scope in scopes} & set(SCOPES))


async def end(call: Call) -> str:
    """End a token at once. One of a login is not among them: it ends with a logout."""
    token_id = call.params["token"]
    known = next((one for one in await call.service.hub.tokens(call.user) if one.id == token_id), None)
    if known is None:
        raise not_found("token", token_id)
    await _end(call, token_id, known.note or "")
    return ""


async def end_own(call: Call) -> str:
    """End the token that asks, whatever it may do."""
    principal = call.principal
    if principal.session or principal.kind is not CallerKind.USER or principal.name != call.user:
        raise Refused(
            Reason.FORBIDDEN, msg("this ends the token of this request; a browser logs out instead")
        )
    await _end(call, principal.token_id, "its own")
    return ""


async def _end(call: Call, token_id: str, note: str) -> None:
    """Record the end of a token and end it; its cached identity is not used any more."""
    detail = {"note": note, "token": token_id}
    users, actor = call.platform.users, call.principal.name
    async with users.changing("user.token_end", call.user, actor=actor, detail=detail):
        if not await call.service.hub.end_token(call.user, token_id):
            raise not_found("token", token_id)
    call.service.auth.forget_user(call.user)


async def token_of(call: Call) -> str:
    """Give a new token of any user to the operator's command on the hub's machine.

    Without scopes it may do all that the user may, without `expires_in` (seconds) it holds for ever.
    """
    if call.principal.kind is not CallerKind.SERVICE or call.principal.name != OPERATOR:
        raise Refused(Reason.FORBIDDEN, msg("only the operator's command `mlp-hub token` may ask for this"))
    return await _new_token(call, call.body)


async def _new_token(call: Call, asked: TokenCreate) -> str:
    """Have the hub make a token; it is given to nobody before it is written down who asked for it."""
    made, token_id = await call.service.hub.new_token_and_id(
        call.user, asked.scopes, expires_in=asked.expires_in, note=asked.note
    )
    detail = {
        "note": asked.note,
        "scopes": msg("all scopes of the user") if asked.scopes is None else asked.scopes,
        "expires": msg("never")
        if asked.expires_in is None
        else msg("after {seconds} s", seconds=str(asked.expires_in)),
    }
    try:
        await call.platform.users.note("user.token", call.user, actor=call.principal.name, detail=detail)
    except Exception:
        with contextlib.suppress(Unavailable):  # nobody has it
            await call.service.hub.end_token(call.user, token_id)
        raise
    return made


async def token_made(call: Call) -> str:
    """Write down that the hub's own page gave somebody a token."""
    if call.principal.kind is not CallerKind.SERVICE or call.principal.name != SPAWNER:
        raise Refused(Reason.FORBIDDEN, msg("only the hub may report this"))
    made: TokenMade = call.body
    detail = {"note": made.note, "scopes": made.scopes, "expires": made.expires}
    await call.platform.users.note("user.token", call.user, actor=made.actor, detail=detail)
    return ""


async def token_ended(call: Call) -> str:
    """Write down that a token is ended at the hub itself, as on its page, before the hub ends it; `recorded`: it has."""
    if call.principal.kind is not CallerKind.SERVICE or call.principal.name != SPAWNER:
        raise Refused(Reason.FORBIDDEN, msg("only the hub may report this"))
    ended: TokenEnded = call.body
    if not ended.recorded:
        detail = {"note": ended.note, "token": ended.token}
        await note_once(call, "user.token_end", ended, actor=ended.actor, detail=detail)
    call.service.auth.forget_user(call.user)
    return ""


async def changing(call: Call) -> str:
    """Write down a change of an account for somebody who asked the hub itself: before the hub makes it, unless this was away."""
    if call.principal.kind is not CallerKind.SERVICE or call.principal.name != SPAWNER:
        raise Refused(Reason.FORBIDDEN, msg("only the hub may report this"))
    asked: AccountChange = call.body
    detail = {} if asked.admin is None else {"admin": asked.admin}
    await note_once(call, asked.action, asked, actor=asked.actor, detail=detail)
    call.service.auth.forget_user(call.user)
    return ""


async def token_uses(call: Call) -> list[TokenUse]:
    """Tell the hub's own page from where a user's tokens were used last."""
    if call.principal.kind is not CallerKind.SERVICE or call.principal.name != SPAWNER:
        raise Refused(Reason.FORBIDDEN, msg("only the hub may ask this"))
    found = await call.service.uses.uses_of(call.user)
    return [TokenUse(id=token, address=address, at=at) for token, (address, at) in found.items()]


ROUTES = (
    Route(
        "GET",
        "/users/{user}/token",
        token,
        "Get a new token",
        Relation.SELF,
        USERS_WRITE,
        reply=str,
        bucket="change",
    ),
    Route(
        "DELETE",
        "/users/{user}/token",
        end_own,
        "End the token that asks",
        Relation.SELF,
        bucket="change",
    ),
    Route(
        "GET",
        "/users/{user}/tokens",
        list_,
        "List tokens, with the last use and from where",
        Relation.SELF,
        USERS_READ,
        query=TokensPage,
        reply=list[TokenInfo],
    ),
    Route(
        "POST",
        "/users/{user}/tokens",
        create,
        "Make a token that may do no more than the one that asks",
        Relation.SELF,
        USERS_WRITE,
        body=TokenAsk,
        reply=TokenGiven,
        status=201,
        bucket="change",
    ),
    Route(
        "DELETE",
        "/users/{user}/tokens/{token}",
        end,
        "End a token",
        Relation.SELF,
        USERS_WRITE,
        bucket="change",
    ),
    Route(
        "POST",
        "/users/{user}/token",
        token_of,
        "Get a new token of any user, for the operator's command",
        Relation.PLATFORM,
        USERS_WRITE,
        body=TokenCreate,
        reply=str,
        status=201,
    ),
    Route(
        "PUT",
        "/users/{user}:token_made",
        token_made,
        "What the hub says of a token that it made",
        Relation.PLATFORM,
        LEDGER_WRITE,
        body=TokenMade,
    ),
    Route(
        "PUT",
        "/users/{user}:token_ended",
        token_ended,
        "What the hub says of a token that was ended there",
        Relation.PLATFORM,
        LEDGER_WRITE,
        body=TokenEnded,
    ),
    Route(
        "PUT",
        "/users/{user}:changing",
        changing,
        "What the hub is about to change of an account",
        Relation.PLATFORM,
        LEDGER_WRITE,
        body=AccountChange,
    ),
    Route(
        "GET",
        "/users/{user}:token_uses",
        token_uses,
        "From where a user's tokens were used, for the hub's own page",
        Relation.PLATFORM,
        LEDGER_WRITE,
        reply=list[TokenUse],
    ),
)

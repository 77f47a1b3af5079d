"""Ends what a person has open: logins, tokens and notebook servers."""

from __future__ import annotations

from typing import Any

from jupyterhub import orm
from jupyterhub.utils import new_token

from mlp_hub.hub_integration.accounts import logins

OWN_CLIENT = "jupyterhub"
"""Given: client of the tokens that the hub makes for programs and servers.

Tokens of a browser's login belong to other clients.
"""


def end_sessions(db: Any, user: Any) -> None:
    """End all logins of a user, all tokens, those of the platform's pages and of notebook servers too, and all OAuth codes.

    `user` is the hub's own record. The platform's sessions end with their tokens.
    """
    user.cookie_id = new_token()  # what JupyterHub derives its XSRF tokens from
    logins.end_all(db, user.id)
    for token in list(user.api_tokens):
        db.delete(token)
    for code in db.query(orm.OAuthCode).filter(orm.OAuthCode.user_id == user.id):
        db.delete(code)
    db.commit()


def end_logins(db: Any, user: Any) -> None:
    """End the logins of a user's browsers, here, at the platform and at their notebook servers, and all OAuth codes.

    Tokens that they made for their programs, and those by which servers and jobs work, stay: it was a login that ended.
    """
    user.cookie_id = new_token()
    logins.end_all(db, user.id)
    for token in list(user.api_tokens):
        if token.client_id != OWN_CLIENT:
            db.delete(token)
    for code in db.query(orm.OAuthCode).filter(orm.OAuthCode.user_id == user.id):
        db.delete(code)
    db.commit()


def end_browser(db: Any, user: Any, login: str, hub_session: str) -> None:
    """End one browser's login, by its digest, with JupyterHub's tokens for that browser; the caller commits."""
    db.query(logins.Login).filter(logins.Login.digest == login).delete()
    if not hub_session:
        return
    for held in (orm.APIToken, orm.OAuthCode):
        for one in db.query(held).filter(held.user_id == user.id, held.session_id == hub_session):
            db.delete(one)


async def end_servers_of(app: Any, user: Any) -> int:
    """Stop all notebook servers of a user without a request of anybody, and return how many there were."""
    ended = 0
    for name, spawner in list(user.spawners.items()):
        if not spawner.active:
            continue
        ended += 1
        if spawner.pending == "spawn" and spawner._spawn_future:  # noqa: SLF001 - the hub has no public way
            spawner._spawn_future.cancel()  # noqa: SLF001
        if spawner.ready:
            await app.proxy.delete_user(user, name)
        if spawner.pending != "stop":
            await user.stop(name)
    return ended


async def end_servers(handler: Any, user: Any) -> int:
    """Stop all notebook servers of a user, also starting ones, and return their number.

    A server remembers the users that it let in, and open kernels keep their connections. So it cannot
    continue without its sessions.
    """
    ended = 0
    for name, spawner in list(user.spawners.items()):
        if not spawner.active:
            continue
        ended += 1
        if spawner.pending == "spawn" and spawner._spawn_future:  # noqa: SLF001 - the hub has no public way
            spawner._spawn_future.cancel()  # noqa: SLF001
        if spawner.ready:
            await handler.stop_single_user(user, name)
        elif spawner.pending != "stop":
            await user.stop(name)
    return ended

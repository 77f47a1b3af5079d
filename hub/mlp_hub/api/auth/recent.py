"""Whether a browser's person has entered the password lately: a signed cookie that the hub sets and both read.

Acts that cannot be taken back, or give something away for longer than a session lasts, ask for it: a session that
somebody found open, or a page that acts in its person's name, is not enough for them.
"""

from __future__ import annotations

import hashlib
import hmac

from tornado.httputil import HTTPHeaders, parse_cookie

from mlp_hub.api.auth.principal import Principal
from mlp_hub.domain.errors import Reason, Refused
from mlp_language.message import msg

COOKIE = "mlp-recent"
RECENT_S = 30 * 60
"""Limit of requests: seconds for which an entered password counts as recent. Actions that cannot be undone need a recent one."""
CONFIRM = "/confirm"
"""The page below the hub's prefix where the password is entered again."""


def sign(secret: bytes, user: str, now: float) -> str:
    """Write down that this user's password was entered just now."""
    when = str(int(now))
    return f"{when}.{_mac(secret, user, when)}"


def is_recent(secret: bytes, value: str, user: str, now: float) -> bool:
    """Tell whether the cookie says that this user's password was entered in the last half hour."""
    when, _, mac = value.partition(".")
    if not (when.isascii() and when.isdigit() and len(when) < 16 and mac.isascii()):
        return False
    return hmac.compare_digest(mac, _mac(secret, user, when)) and 0 <= now - int(when) <= RECENT_S


def check_recent(headers: HTTPHeaders, principal: Principal, secret: bytes, cookie: str, now: float) -> None:
    """Refuse a browser's session without a recent login; a caller with a token is a program."""
    if not principal.session:
        return
    value = parse_cookie(headers.get("Cookie", "")).get(cookie, "")
    if not is_recent(secret, value, principal.name, now):
        raise Refused(
            Reason.LOGIN_TOO_OLD,
            msg(
                "this needs a password that was entered in the last {n} minutes; enter it at /hub{confirm} and do it again",
                n=RECENT_S // 60,
                confirm=CONFIRM,
            ),
        )


def check_token(principal: Principal) -> None:
    """Refuse a browser's session at a hub that is another's, which nobody can ask for a recent login; a caller with a token is a program."""
    if principal.session:
        raise Refused(
            Reason.LOGIN_TOO_OLD,
            msg(
                "this cannot be done from a page here, because your JupyterHub does not ask for the password again; do it with a token, by `mlp` or the API"
            ),
        )


def _mac(secret: bytes, user: str, when: str) -> str:
    return hmac.new(secret, f"mlp-recent:{when}:{user}".encode(), hashlib.sha256).hexdigest()

"""Rule for tokens that make tokens: a new token may not do more, or last longer, than its maker.

The platform's API applies it, and the hub's half applies it to requests to JupyterHub itself. Each
does so with its own knowledge of a token.
"""

from __future__ import annotations

from collections.abc import Collection

from mlp_language.message import Message, msg


def left_of(ends: float | None, now: float) -> int | None:
    """Return for how many seconds a token holds; None where it holds for ever."""
    return None if ends is None else max(1, int(ends - now))


def may_no_more(wanted: Collection[str], held: Collection[str]) -> Message | None:
    """Say which scopes a token would give that it does not have; None where it has all."""
    if more := sorted(set(wanted) - set(held)):
        return msg(
            "a token cannot make a token with more rights, and your own token lacks {more}; name the scopes of the new one",
            more=tuple(more[:5]),
        )
    return None


def lasts_no_longer(wanted: float | None, left: int | None, slack_s: int = 0) -> Message | None:
    """Say so where a token would hold for longer than the one that makes it; None of seconds is for ever."""
    if left is None or (wanted is not None and wanted <= left + slack_s):
        return None
    return msg(
        "a token cannot outlive the token that makes it, which is valid for another {left} s: ask for at most that",
        left=left,
    )

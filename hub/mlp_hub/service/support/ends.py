"""Check of an end that somebody gives to what is there for a while, such as a silence."""

from __future__ import annotations

from mlp_hub.domain.accounting.days import DAY_S
from mlp_hub.domain.errors import Reason, Refused
from mlp_language.message import Message, msg


def check_end(
    what: Message, ends_at: float, now: float, *, days: int, begins_at: float | None = None
) -> None:
    """Raise `Invalid` unless the end of `what`, in seconds since the epoch, is later than now and than its begin, and within `days` days."""
    if ends_at <= now or (begins_at is not None and ends_at <= begins_at):
        if begins_at is None:
            late = msg(
                "until is when {what} ends: it must be later than now; choose a later end (until, or --lasts)",
                what=what,
            )
        else:
            late = msg("until is when {what} ends: it must be later than now, and than begin", what=what)
        raise Refused(Reason.INVALID, late)
    if ends_at > now + days * DAY_S:
        raise Refused(
            Reason.INVALID,
            msg(
                "{what} must end within {n} days from now; choose an earlier end (until, or --lasts)",
                what=what,
                n=days,
            ),
        )

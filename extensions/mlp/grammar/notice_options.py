"""Options of the verbs `notify` and `announce`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlp.errors import UsageError
from mlp.language import say
from mlp.terms import NOTICE_EVENTS

USUAL = ("finished", "failed")
LEVELS = ("info", "warning", "critical")


def right_notify_call(names: Sequence[str], given: Mapping[str, Any]) -> bool:
    """Tell whether the act of `notify` has the options that are given."""
    act = names[0] if names else "ls"
    return not ("events" in given and act != "set") and not ("timezone" in given and act != "quiet")


def events(text: object) -> list[str]:
    """Read a list of events. Raises `UsageError`."""
    found = [one for one in str(text).split(",") if one]
    for one in found:
        if one not in NOTICE_EVENTS:
            raise UsageError(
                say(
                    "{event} is not an event; events are {events}", event=one, events=", ".join(NOTICE_EVENTS)
                )
            )
    return found


def level(text: object) -> str:
    """Read a level. Raises ValueError."""
    if text not in LEVELS:
        raise ValueError(say("is not a level; choose one of {levels}", levels=", ".join(LEVELS)))
    return str(text)


def right_announce_call(names: Sequence[str], given: Mapping[str, Any]) -> bool:
    """Tell whether the act of `announce` has the options that are given."""
    return not (given.keys() & {"level", "lasts"} and (names[0] if names else "ls") in {"ls", "rm"})

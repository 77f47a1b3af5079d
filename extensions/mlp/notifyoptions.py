"""Options of the verb `notify`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlp.errors import UsageError
from mlp.language import say
from mlp.terms import NOTICE_EVENTS

USUAL = ("finished", "failed")


def right_call(names: Sequence[str], given: Mapping[str, Any]) -> bool:
    """Tell whether the words after `notify` are one of its acts."""
    act, more = names[0] if names else "ls", len(names) - 1
    if ("events" in given and act != "set") or ("timezone" in given and act != "quiet"):
        return False
    right = {"ls": more < 1, "set": more in (1, 2), "rm": more >= 1, "test": more == 1, "quiet": more == 1}
    return right.get(act, False)


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

"""Names that a message refers to, and its text, for tests."""

from __future__ import annotations

from collections.abc import Collection

from mlp_api.localized import Text
from mlp_hub.scheduler.model.types import Verdict
from mlp_language.message import JobRef, Message, Viewer, refs


def named(message: Message) -> list[str | None]:
    """Return the jobs and tenants that a message names, in order."""
    return [ref.name for ref in refs(message)]


def about(verdict: Verdict) -> list[str | None]:
    """Return whom its headline names."""
    return named(verdict.headline)


def who(verdict: Verdict, key: str) -> str:
    """Return whom the fact of this key (`cpu_inuse`) is about, as text."""
    fact = next(f for f in verdict.facts if f.name == key)
    return str(Message("{who}", {"who": fact.who}))


def job_ref(name: str, user: str = "ann", tenant: str = "red") -> JobRef:
    """Return a reference to a job whose uid is its name."""
    return JobRef(name, name, user, tenant)


def seen(text: Text, *own: str, knows: Collection[str] = ()) -> str:
    """Return what is read by a member of these tenants, which share with those that it `knows`."""
    return str(Viewer(frozenset(own), frozenset(knows)).hidden(text.message))

"""Callers: a user, one of the hub's services, or a job with its own token."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from mlp_hub.api.auth.scopes import PLATFORM_ADMIN


class CallerKind(StrEnum):
    """Kind of caller."""

    USER = "user"
    SERVICE = "service"
    JOB = "job"


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller whose token was checked. Made from the token alone, never from a header that says who one is.

    `scopes` are those that hold everywhere; `own_scopes` those the hub limited to the caller's own objects.
    `session` is the id of the browser session when a cookie brought the token, else empty. `job` is the run whose own token
    it is, as NAME@RUN. `token_id` is what the hub calls the token by, empty where it is not the hub's.
    """

    kind: CallerKind
    name: str
    scopes: frozenset[str] = frozenset()
    own_scopes: frozenset[str] = frozenset()
    groups: tuple[str, ...] = ()
    session: str = field(default="", repr=False)
    job: str = ""
    token_id: str = ""

    @property
    def is_platform_admin(self) -> bool:
        """Whether the caller has an admin's relation to every object; a service is bounded by its scopes alone."""
        return self.kind is CallerKind.SERVICE or (
            self.kind is CallerKind.USER and PLATFORM_ADMIN in self.scopes
        )

    @property
    def key(self) -> str:
        """Name its share of rate limits and of idempotency keys."""
        return f"{self.kind}:{self.name}"


def parse_scopes(name: str, held: list[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Split a hub token's scopes into (everywhere, own objects only).

    A filter other than the caller's own user name is dropped: it gives nothing here.
    """
    everywhere, own = set(), set()
    for scope in held:
        base, bang, scope_filter = scope.partition("!")
        if not bang or base.startswith("access:"):
            everywhere.add(scope)
        elif scope_filter in ("user", f"user={name}"):
            own.add(base)
    return frozenset(everywhere), frozenset(own)

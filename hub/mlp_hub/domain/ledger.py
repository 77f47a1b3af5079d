"""Resource requests: try, confirm, cancel, and their release; one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from mlp_hub.domain.errors import IllegalTransition
from mlp_hub.domain.resources import Resources

APPLIERS: Mapping[str, str] = {
    "dm": "data manager",
    "jm": "job manager",
    "am": "application manager",
    "mm": "model manager",
    "sp": "spawner of notebook servers",
}


class RequestPhase(StrEnum):
    """Where a resource request stands."""

    CLAIMED = "claimed"  # holds nothing yet: room is being made for it; until it expires
    TRIED = "tried"  # held until it expires
    CONFIRMED = "confirmed"  # held until released
    RELEASING = "releasing"  # a release was tried; still held, because it may be cancelled
    RELEASED = "released"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


R = RequestPhase
REQUEST_TRANSITIONS: Mapping[RequestPhase, frozenset[RequestPhase]] = {
    R.CLAIMED: frozenset({R.TRIED, R.CANCELLED, R.EXPIRED}),
    R.TRIED: frozenset({R.CONFIRMED, R.CANCELLED, R.EXPIRED}),
    R.CONFIRMED: frozenset({R.RELEASING, R.RELEASED}),
    R.RELEASING: frozenset({R.RELEASED, R.CONFIRMED}),
    # an id may be used again once what it held was given back: a notebook server keeps its name
    R.RELEASED: frozenset({R.TRIED, R.CLAIMED}),
    R.CANCELLED: frozenset({R.TRIED, R.CLAIMED}),
    R.EXPIRED: frozenset({R.TRIED, R.CLAIMED}),
}
RELEASE_TRANSITIONS: Mapping[RequestPhase, frozenset[RequestPhase]] = {
    # an anonymous release (its own id, an amount) holds nothing; once confirmed its id is used up, so that a
    # repeated one gives nothing back twice
    R.TRIED: frozenset({R.RELEASED, R.CANCELLED, R.EXPIRED}),
    R.CANCELLED: frozenset({R.TRIED}),
    R.EXPIRED: frozenset({R.TRIED}),
    R.RELEASED: frozenset(),
}
HELD = frozenset({R.TRIED, R.CONFIRMED, R.RELEASING})


@dataclass(frozen=True, slots=True)
class ResourceRequest:
    """One row of the ledger: who holds how much of which tenant's quota, and where."""

    id: str
    applier: str
    tenant: str
    amount: Resources
    phase: RequestPhase
    created_at: float
    expires_at: float | None = None
    node: str | None = None  # the node whose capacity it also takes, if any
    holder: str = ""  # shown to people: "ann's notebook", "job digits of ann"
    user: str = ""
    kind: str = "request"  # or "release": an anonymous one, which gives back `amount` when confirmed
    shares: tuple[
        tuple[str, Resources], ...
    ] = ()  # what it takes of which node; empty: of none. Of a claim: what is set aside for it
    last: str = "try"  # what moved it last (try, claim, confirm, cancel, release, expire): a repeated call is known by it

    @property
    def held(self) -> bool:
        """Whether it counts as in use; whether a try has expired is for the caller's clock to say."""
        return self.kind == "request" and self.phase in HELD

    def expired(self, now: float) -> bool:
        """Whether it is a claim, or a try of a request or of a release, whose time is over at `now`."""
        return (
            self.phase in (RequestPhase.CLAIMED, RequestPhase.TRIED, RequestPhase.RELEASING)
            and self.expires_at is not None
            and self.expires_at <= now
        )


def check_request_move(request: ResourceRequest, new: RequestPhase) -> None:
    """Raise `IllegalTransition` unless the table allows the move."""
    table = REQUEST_TRANSITIONS if request.kind == "request" else RELEASE_TRANSITIONS
    if new not in table.get(request.phase, frozenset()):
        raise IllegalTransition(
            "resource request", f"{request.applier}/{request.id}", request.phase, f"become {new}"
        )

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

    TRIED = "tried"  # held until it expires
    CONFIRMED = "confirmed"  # held until released
    RELEASING = "releasing"  # a release was tried; still held, because it may be cancelled
    RELEASED = "released"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


R = RequestPhase
REQUEST_TRANSITIONS: Mapping[RequestPhase, frozenset[RequestPhase]] = {
    R.TRIED: frozenset({R.CONFIRMED, R.CANCELLED, R.EXPIRED}),
    R.CONFIRMED: frozenset({R.RELEASING, R.RELEASED}),
    R.RELEASING: frozenset({R.RELEASED, R.CONFIRMED}),
    # an id may be used again once what it held was given back: a notebook server keeps its name
    R.RELEASED: frozenset({R.TRIED}),
    R.CANCELLED: frozenset({R.TRIED}),
    R.EXPIRED: frozenset({R.TRIED}),
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

    @property
    def held(self) -> bool:
        """Whether it counts as in use."""
        return self.phase in HELD


def check_request_move(request: ResourceRequest, new: RequestPhase) -> None:
    """Raise `IllegalTransition` unless the table allows the move."""
    if new not in REQUEST_TRANSITIONS[request.phase]:
        raise IllegalTransition("resource request", f"{request.applier}/{request.id}", request.phase, f"become {new}")

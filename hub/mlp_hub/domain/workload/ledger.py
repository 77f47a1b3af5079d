"""Resource requests: try, confirm, cancel, and their release; one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from mlp_hub.domain.machine import Machine
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.workload.workload import APP
from mlp_language.message import msg

APPLIERS: Mapping[str, str] = {
    "dm": "data manager",
    "jm": "job manager",
    "am": "application manager",
    "mm": "model manager",
    "sp": "spawner of notebook servers",
    "st": "storage",
}
OF_JOBS = "jm"
OF_STORAGE = "st"
"""Applier of the requests for storage (`domain.stored.storage`); nobody outside can ask in its name."""


class RequestPhase(StrEnum):
    """State of a resource request."""

    PENDING = "pending"  # holds nothing yet, waits to be admitted; until it expires
    TRIED = "tried"  # until it expires
    CONFIRMED = "confirmed"  # until it is released
    RELEASING = "releasing"  # a release was tried; still held, because it may be cancelled
    RELEASED = "released"  # given back
    CANCELLED = "cancelled"  # by who asked, before it was confirmed
    EXPIRED = "expired"  # nobody confirmed it in time


R = RequestPhase
_REFUSAL = msg("resource request {applier}/{id} is {old} and cannot become {new}")
REQUEST_MACHINE = Machine(
    {
        R.PENDING: frozenset({R.TRIED, R.CANCELLED, R.EXPIRED}),
        R.TRIED: frozenset({R.CONFIRMED, R.CANCELLED, R.EXPIRED}),
        R.CONFIRMED: frozenset({R.RELEASING, R.RELEASED}),
        R.RELEASING: frozenset({R.RELEASED, R.CONFIRMED}),
        # an id may be used again once what it held was given back: a notebook server keeps its name
        R.RELEASED: frozenset({R.TRIED, R.PENDING}),
        R.CANCELLED: frozenset({R.TRIED, R.PENDING}),
        R.EXPIRED: frozenset({R.TRIED, R.PENDING}),
    },
    _REFUSAL,
)
RELEASE_MACHINE = Machine(
    {
        # an anonymous release (its own id, an amount) holds nothing; once confirmed its id is used up, so that a
        # repeated one gives nothing back twice
        R.TRIED: frozenset({R.RELEASED, R.CANCELLED, R.EXPIRED}),
        R.CANCELLED: frozenset({R.TRIED}),
        R.EXPIRED: frozenset({R.TRIED}),
        R.RELEASED: frozenset(),
    },
    _REFUSAL,
)
HELD = frozenset({R.TRIED, R.CONFIRMED, R.RELEASING})


@dataclass(frozen=True, slots=True)
class ResourceRequest:
    """Row of the ledger: the holder, the amount, the tenant whose quota it takes, and the nodes."""

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
    shares: tuple[tuple[str, Resources], ...] = ()  # what it takes of which node; empty: of none
    last: str = (
        "try"  # what moved it last (try, confirm, cancel, release, expire): a repeated call is known by it
    )
    environment: str | None = None  # uid of the one that a notebook server is started with

    @property
    def uid(self) -> str:
        """Its name among workloads; no job's has a slash."""
        return f"{self.applier}/{self.id}"

    @property
    def held(self) -> bool:
        """Whether it counts as in use; whether a try has expired is for the caller's clock to say."""
        return self.kind == "request" and self.phase in HELD

    def waits(self, now: float) -> bool:
        """Whether it waits to be admitted at `now`."""
        return self.phase is RequestPhase.PENDING and not self.expired(now)

    def expired(self, now: float) -> bool:
        """Whether it is pending, or a try of a request or of a release, whose time is over at `now`."""
        return (
            self.phase in (RequestPhase.PENDING, RequestPhase.TRIED, RequestPhase.RELEASING)
            and self.expires_at is not None
            and self.expires_at <= now
        )


def replica_holder(app: str, slot: int) -> str:
    """Write who holds a request where that is a replica of an app; a job's name has no blank."""
    return f"{APP} {app} {slot}"


def replica_in(request: ResourceRequest) -> tuple[str, int] | None:
    """Return the app and which of its replicas holds a request; None where it is none."""
    kind, _, rest = request.holder.partition(" ")
    app, _, slot = rest.partition(" ")
    if request.applier != OF_JOBS or kind != APP or not slot.isdecimal():
        return None
    return app, int(slot)


def check_request_move(request: ResourceRequest, new: RequestPhase) -> None:
    """Raise `IllegalTransition` unless the table allows the move."""
    machine = REQUEST_MACHINE if request.kind == "request" else RELEASE_MACHINE
    machine.check(request.phase, new, applier=request.applier, id=request.id)

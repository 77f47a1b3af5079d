"""Metrics of people under the names that dashboards of JupyterHub join on: sizes of homes, and places in teams.

They are the only ones that grow with people. So their number is limited, the people with the largest homes come first, and the
database is read once a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mlp_hub.domain.tenants.tenant import DEFAULT_TENANT
from mlp_hub.service.monitoring import table as t
from mlp_hub.service.monitoring.gauges import Family
from mlp_hub.store.tx import Tx

PEOPLE_S = 60.0
"""Tuning: seconds for which the people and their homes count: homes are measured no more often than that."""
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")


@dataclass(frozen=True, slots=True)
class KnownPerson:
    """User, the teams of the user, and of the measured home its bytes and the team that it counts for."""

    name: str
    tenants: Sequence[str]
    home: int | None = None
    home_of: str = ""


@dataclass(frozen=True, slots=True)
class PeopleLook:
    """People, and the bytes of storage that each team has left, where it has a quota."""

    people: Sequence[KnownPerson] = ()
    left: Mapping[str, int] = field(default_factory=dict)


def look_at_people(tx: Tx, most: int, now: float) -> PeopleLook:
    """Look at `most` people, those with the largest homes first."""
    rows = tx.stored.people(most)
    places: dict[str, list[str]] = {name: [] for name, _, _ in rows}
    for member in tx.members.of_users(list(places)):
        places[member.user].append(member.tenant)
    held = tx.ledger.in_use_by_tenant(now)
    left = {
        tenant.name: max(0, tenant.quota.rom - (held[tenant.name].rom if tenant.name in held else 0))
        for tenant in tx.tenants.all()
        if tenant.quota.rom is not None
    }
    people = [
        KnownPerson(name, places[name] or [DEFAULT_TENANT], used, tenant or "") for name, tenant, used in rows
    ]
    return PeopleLook(people, left)


def of_people(look: PeopleLook, namespace_of: Callable[[str], str]) -> Iterator[Family]:
    """Yield the metrics. `namespace_of` returns the namespace of a team's pods, which is empty without a cluster."""
    homes = [
        (one, (namespace_of(one.home_of), escaped(one.name))) for one in look.people if one.home is not None
    ]
    yield t.DIRECTORY, [(labels, float(one.home or 0)) for one, labels in homes]
    yield (
        t.DIRECTORY_LIMIT,
        [
            (labels, float((one.home or 0) + look.left[one.home_of]))
            for one, labels in homes
            if one.home_of in look.left
        ],
    )
    yield (
        t.USER_GROUP,
        [
            ((namespace_of(tenant), tenant, one.name, escaped(one.name), escaped(one.name)), 1.0)
            for one in look.people
            for tenant in one.tenants
        ],
    )


def escaped(name: str) -> str:
    """Return a user's name as names of directories and pods have it: other bytes than a-z and 0-9 become `-` and two digits."""
    return "".join(
        char if char in _PLAIN else "".join(f"-{byte:02x}" for byte in char.encode(errors="replace"))
        for char in name
    )

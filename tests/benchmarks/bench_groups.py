"""What groups of a company cost at 10,000 people and 1,000 groups: rules at each login, a turn of the sweep, a change at the service."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from jupyterhub import orm
from jupyterhub.crypto import CryptKeeper, encrypt
from jupyterhub.user import UserDict

from bench_common import Context, Figure, median_of, quantile
from mlp_api.types import TenantCreate
from mlp_hub.domain.tenants.tenant import Member
from mlp_hub.hub_integration.accounts import logins
from mlp_hub.hub_integration.providers.protocols.provider import ProviderIdentity
from mlp_hub.hub_integration.providers.records import identities
from mlp_hub.hub_integration.providers.sync import refresh
from mlp_hub.hub_integration.providers.sync.people import HubPeople
from mlp_hub.hub_integration.providers.sync.refresh import ProviderPass, Refresher
from mlp_hub.service.config import RunPolicy
from mlp_hub.service.tenants.groups import GroupPolicy, policy_of
from mlp_hub.store.tx import Tx
from proc import pss_of_tree
from support.rigs.platform_rig import Rig, node

NAME = "groups"
ABOUT = (
    "10,000 people, each in 10 of 1,000 groups that rules are about and in 30 others; rules read for each of them; the sweep of a "
    "hub's database in which all have a token, at a provider that answers at once (seconds of processor, of 500 of them); the "
    "service's tenants in step with groups, of 500 people: all of them new, then unchanged, then with one group less"
)
PEOPLE, GROUPS, EACH, OTHERS = 10_000, 1_000, 10, 30
SOME = 500
RULES = ("/ml/{tenant} -> {tenant}", "/ml/{tenant}/admins -> {tenant}:admin", "/physics/* -> physics")
COMMAND = "make bench ONLY=groups"


def run(context: Context) -> list[Figure]:
    policy = policy_of(RULES, title="Keycloak", make=True, quota=["cpu=2", "ram=1024"])
    chance = random.Random(7)
    theirs = {
        f"crowd{n:05d}": (
            *(f"/ml/team-{g}" for g in chance.sample(range(GROUPS), EACH)),
            *(f"/company/unit-{g}" for g in chance.sample(range(GROUPS), OTHERS)),
        )
        for n in range(PEOPLE)
    }
    sweep, service = context.tmp / "sweep", context.tmp / "service"
    for directory in (sweep, service):
        directory.mkdir()
    return [
        *_rules(policy, theirs),
        *asyncio.run(_sweep(sweep, policy, theirs)),
        *asyncio.run(_service(service, policy, theirs)),
    ]


def _rules(policy: GroupPolicy, theirs: dict[str, tuple[str, ...]]) -> list[Figure]:
    took = [_microseconds(lambda groups=groups: policy.wanted(groups)) for groups in theirs.values()]
    all_of_them = [f"/ml/team-{g}" for g in range(GROUPS)]
    most = [_microseconds(lambda: policy.wanted(all_of_them)) / 1000 for _ in range(50)]
    return [
        Figure(
            "groups: rules for one person",
            median_of(took),
            "us, p50",
            note=f"{EACH + OTHERS} groups, {len(RULES)} rules; p99 {quantile(took, 0.99):.0f} us",
            command=COMMAND,
        ),
        Figure(
            "groups: rules for who is in all 1,000",
            median_of(most),
            "ms, p50",
            note="as many as are looked at",
            command=COMMAND,
        ),
    ]


def _microseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e6


# ------------------------------------------------------------------------ the sweep


class _World:
    """A provider that answers at once, and a service that hears all."""

    def __init__(self, theirs: dict[str, tuple[str, ...]]) -> None:
        self.theirs = theirs
        self.told = 0
        self.token = 0

    async def refreshed(self, auth_state: Any) -> tuple[ProviderIdentity, dict[str, Any]]:
        name = auth_state["name"]
        kept = {**auth_state, "token": self.token}
        return ProviderIdentity("i", name, name, "", False, self.theirs[name], admin=False), kept

    async def unreachable(self) -> None:
        return None

    async def report_identity(self, user: str, **told: object) -> None:
        self.told += 1

    async def working(self) -> list[str]:
        return []

    async def report_provider(self, *, away: bool) -> None:
        assert not away


async def _sweep(directory: Path, policy: GroupPolicy, theirs: dict[str, tuple[str, ...]]) -> list[Figure]:
    db = orm.new_session_factory(f"sqlite:///{directory}/hub.sqlite")()
    logins.Login.__table__.create(db.bind, checkfirst=True)
    identities.ensure_table(db)
    CryptKeeper.instance(keys=[os.urandom(32)])
    users = UserDict(lambda: db, {"authenticator": None})
    world = _World(theirs)
    people = HubPeople(SimpleNamespace(db=db, users=users), decides_admins=False, unseen_s=86_400)
    db.add_all([orm.User(name=name) for name in theirs])
    db.flush()
    begun = datetime.now(UTC).replace(tzinfo=None)
    for user in db.query(orm.User).all():
        person = {"issuer": "i", "subject": user.name, "name": user.name, "claimed_name": user.name}
        db.add(identities.PersonIdentity(**person, begun=begun))
        db.add(orm.APIToken(user_id=user.id, hashed=f"x:1:1:{user.name}", prefix=user.name[-4:]))
    db.commit()
    for user in db.query(orm.User):
        user.encrypted_auth_state = await encrypt({"name": user.name})
    db.commit()
    now = [1000.0]
    refresher = Refresher(world, people, world, policy, lambda: now[0], every_s=30.0)
    sweep = ProviderPass(refresher, people, world, every_s=30.0)
    refresher.looked.update(dict.fromkeys(list(theirs)[SOME:], 1e12))  # type: ignore[attr-defined]  # those are not due
    rate = refresh.RATE
    refresh.RATE = SOME / 15  # so many in one turn
    try:
        first, asked = await _processor(sweep, now[0])
        assert asked == SOME, asked
        now[0], world.token = now[0] + 60, 1
        renewed, asked = await _processor(sweep, now[0])
        assert asked == SOME, asked
        now[0] += 60
        again, asked = await _processor(sweep, now[0])
        assert asked == SOME, asked
        idle, asked = await _processor(sweep, now[0])
        assert asked == 0, asked
    finally:
        refresh.RATE = rate
        db.close()
    per_second = f"{rate:g} people a second at most, so {PEOPLE / rate / 60:.0f} min for all of them"
    return [
        Figure(
            "groups: sweep, person with new groups",
            first / SOME * 1000,
            "ms CPU",
            note="groups made and written in the hub's database",
            command=COMMAND,
        ),
        Figure(
            "groups: sweep, person with new tokens",
            renewed / SOME * 1000,
            "ms CPU",
            note="each time that the provider's access token is over: 5 min of Keycloak",
            command=COMMAND,
        ),
        Figure(
            "groups: sweep, person as before",
            again / SOME * 1000,
            "ms CPU",
            note=f"{per_second}; {again / SOME * rate * 100:.1f} % of a core meanwhile",
            command=COMMAND,
        ),
        Figure(
            "groups: sweep, a turn in which nobody is due",
            idle * 1000,
            "ms CPU",
            note=f"each 15 s; {PEOPLE} have a token; the process {pss_of_tree(os.getpid(), own_only=True):.0f} MB",
            command=COMMAND,
        ),
    ]


async def _processor(sweep: ProviderPass, now: float) -> tuple[float, int]:
    before = time.process_time()
    asked = await sweep.turn(now)
    return time.process_time() - before, asked


# ---------------------------------------------------------------------- the service


async def _service(directory: Path, policy: GroupPolicy, theirs: dict[str, tuple[str, ...]]) -> list[Figure]:
    rig = Rig(directory, node(), policy=RunPolicy())
    rig.groups = policy
    rig.platform = rig.make()
    platform = await rig.start()
    try:
        names = list(theirs)[:SOME]
        for name in names:
            await platform.users.ensure(name)
        wanted = {name: policy.concerned(groups)[0] for name, groups in theirs.items()}
        for group in range(GROUPS):
            await platform.tenants.create(TenantCreate(name=f"team-{group}", cpu=2, ram=1024))
        await rig.db.write(lambda tx: _fill(tx, theirs, policy))

        async def times(some: Sequence[str], left_out: int = 0) -> tuple[list[float], float]:
            took, before = [], time.process_time()
            for name in some:
                began = time.perf_counter()
                await platform.tenants.sync_groups(name, wanted[name][left_out:])
                took.append((time.perf_counter() - began) * 1000)
            return took, (time.process_time() - before) * 1000 / len(some)

        kinds = (
            ("new", await times(names)),
            ("unchanged", await times(names)),
            ("one group less", await times(names, 1)),
        )
        return [
            Figure(
                f"groups: service, person {what}",
                median_of(took),
                "ms, p50",
                note=f"p99 {quantile(took, 0.99):.1f} ms; {cpu:.2f} ms CPU; {GROUPS} tenants, {PEOPLE * EACH} places",
                command=COMMAND,
            )
            for what, (took, cpu) in kinds
        ]
    finally:
        await rig.close()


def _fill(tx: Tx, theirs: dict[str, tuple[str, ...]], policy: GroupPolicy) -> None:
    """Write the places of all others, as their logins would."""
    for name, groups in list(theirs.items())[SOME:]:
        tx.users.ensure(name, 0.0)
        for tenant, place in policy.wanted(groups).places.items():
            tx.members.put(Member(tenant, name, place.role, "group"))

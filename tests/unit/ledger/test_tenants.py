from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_api import types as api
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs.job import Job, JobSpec, Phase, Target
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.tenants.tenant import Member, Role, User
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.service.nodes.listing import Nodes
from mlp_hub.service.quota.ledger import Ledger
from mlp_hub.service.tenants.service import TenantService
from mlp_hub.service.tenants.users import UserService, UserStanding
from mlp_hub.store import Database

SIZE = Resources(cpu=4000, ram=8192)


class Hub:
    """Tenants, users, ledger and nodes on one database; calls are made synchronous."""

    name = "fake"

    def __init__(self, db: Database) -> None:
        self.db, self.changes = db, 0
        self.at = 1000.0
        self.tenants = TenantService(db, lambda: self.at, self.nodes, changed=self.changed)
        self.users = UserService(db, lambda: self.at)
        self.ledger = Ledger(db, lambda: self.at, self.nodes, changed=self.changed)
        self.node_list = Nodes(db, self.nodes, lambda: self.at)

    def nodes(self) -> list[NodeInfo]:
        return [NodeInfo("n1", SIZE, Resources(cpu=2000, ram=8192), labels={"zone": "a"})]

    def changed(self) -> None:
        self.changes += 1

    def create(self, name: str, /, **kw: object) -> api.Tenant:
        return asyncio.run(self.tenants.create(api.TenantCreate(name=name, **kw), actor="root"))

    def update(self, name: str, /, **kw: object) -> api.Tenant:
        return asyncio.run(self.tenants.update(name, api.TenantUpdate(**kw), actor="root"))

    def delete(self, name: str) -> api.Tenant:
        return asyncio.run(self.tenants.delete(name, actor="root"))

    def put(self, tenant: str, user: str, role: str = "member") -> api.Member:
        return asyncio.run(self.tenants.set_member(tenant, user, role, actor="root"))

    def hold(self, request_id: str, tenant: str, applier: str = "sp", **kw: object) -> None:
        asked = api.ResourceRequestTry(
            id=request_id, applier=applier, request_type="request", tenant=tenant, **kw
        )
        asyncio.run(self.ledger.try_(asked))
        asyncio.run(self.ledger.confirm(api.ResourceRequestKey(id=request_id, applier=applier)))

    def audit(self) -> list[tuple[str, str, str]]:
        with self.db.reading() as tx:
            return [(e.actor, e.action, e.name) for e in reversed(tx.audit.page()[0])]


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    db = Database(str(tmp_path / "mlp.sqlite"))
    db.create_schema()
    yield Hub(db)
    db.close()


def refused(reason: Reason, words: str = ""):
    return pytest.raises(Refused, match=f"(?s)^{reason}: .*{words}")


def test_a_tenant_is_made_changed_and_deleted_with_a_row_in_the_audit_for_each(hub: Hub) -> None:
    made = hub.create(
        "red",
        cpu=2,
        ram=4096,
        gpu_kinds={"a100": 0.5},
        cohort="main",
        borrowing_limit={"cpu": 1, "gpu:a100": 2},
    )
    assert (made.cpu, made.gpu, made.ram, made.cpu_inuse) == (2.0, None, 4096, 0.0)
    assert made.borrowing_limit == {"cpu": 1.0, "gpu:a100": 2.0}
    assert asyncio.run(hub.tenants.get("red")) == made
    changed = hub.update("red", cpu=3)
    assert (changed.cpu, changed.ram, changed.borrowing_limit) == (3.0, None, None)
    hub.update("red", cpu=3)
    assert hub.delete("red") == changed
    assert [t.name for t in asyncio.run(hub.tenants.list())] == ["default"]
    assert hub.audit() == [("root", f"tenant.{a}", "red") for a in ("create", "update", "delete")]
    assert hub.changes == 4


def test_names_that_are_taken_missing_or_changed_are_refused(hub: Hub) -> None:
    hub.create("red")
    with refused(Reason.CONFLICT, "team red already"):
        hub.create("red")
    with refused(Reason.NOT_FOUND, "team blue does not exist"):
        hub.update("blue")
    with refused(Reason.NOT_FOUND):
        hub.delete("blue")
    with refused(Reason.NOT_FOUND):
        asyncio.run(hub.tenants.get("blue"))
    with refused(Reason.INVALID, "teams are not renamed"):
        hub.update("red", name="blue")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cpu", math.nan),
        ("gpu", math.inf),
        ("weight", math.inf),
        ("weight", -1.0),
        ("gpu_kinds", {"a100": math.nan}),
        ("lending_limit", {"cpu": -1}),
        ("reserved", {"ram": 1.5}),
        ("reserved", {"ram": 1e300}),
        ("borrowing_limit", {"disk": 1}),
        ("borrowing_limit", {"cpu:x": 1}),
    ],
)
def test_limits_that_are_not_amounts_are_refused(hub: Hub, field: str, value: object) -> None:
    with refused(Reason.INVALID, "weight" if field == "weight" else field):
        hub.create("red", **{field: value})


def test_parents_must_exist_and_make_no_circle(hub: Hub) -> None:
    with refused(Reason.INVALID, "the parent top does not exist"):
        hub.create("red", parent="top")
    with refused(Reason.INVALID, "red > red"):
        hub.create("red", parent="red")
    hub.create("top")
    hub.create("mid", parent="top")
    hub.create("low", parent="mid")
    with refused(Reason.INVALID, "top > low > mid > top"):
        hub.update("top", parent="low")
    with refused(Reason.WRONG_STATE, "1 team below it \\(low\\)"):
        hub.delete("mid")


def test_a_tenant_in_use_is_not_deleted_and_the_default_one_never(hub: Hub) -> None:
    hub.create("red", cpu=2)
    hub.put("red", "bob")
    hub.hold("bob", "red", cpu=0.5, ram=512, user="bob")
    with hub.db.begin() as tx:
        spec = JobSpec("j", "bob", "red", "plain", Resources())
        tx.jobs.insert(Job("1" * 26, spec, Phase.QUEUED, Target.RUN, 1.0))
    with refused(
        Reason.WRONG_STATE, "has 1 member, 1 active job and 1 held request \\(bob's notebook\\) and cannot"
    ):
        hub.delete("red")
    with refused(Reason.WRONG_STATE, "default team cannot be deleted"):
        hub.delete("default")


def test_lowering_a_quota_below_its_use_is_allowed_and_shows(hub: Hub) -> None:
    hub.create("red", cpu=2)
    hub.hold("bob", "red", cpu=2, ram=512, user="bob")
    shown = hub.update("red", cpu=1)
    assert (shown.cpu, shown.cpu_inuse) == (1.0, 2.0)


def test_usage_names_the_holders_and_has_a_history_by_the_hour(hub: Hub) -> None:
    hub.create("red", cpu=2)
    hub.hold("bob", "red", cpu=0.5, ram=512, user="bob")
    asyncio.run(hub.tenants.sample())  # at 1000
    hub.at += 60  # of the same 5 minutes, the last counts: this one
    hub.hold("ann", "red", cpu=0.5, ram=256, user="ann")
    asyncio.run(hub.tenants.sample())
    hub.at += 300
    hub.hold("eve", "red", cpu=1, ram=256, user="eve")
    asyncio.run(hub.tenants.sample())
    hub.at += 3600
    asyncio.run(hub.tenants.sample())
    usage = asyncio.run(hub.tenants.usage("red"))
    assert {(str(h.holder), h.cpu, h.ram, h.since.isoformat()) for h in usage.holdings} == {
        ("bob's notebook", 0.5, 512, "1970-01-01T00:16:40+00:00"),
        ("ann's notebook", 0.5, 256, "1970-01-01T00:17:40+00:00"),
        ("eve's notebook", 1.0, 256, "1970-01-01T00:22:40+00:00"),
    }
    assert [(hour.time.isoformat(), hour.cpu, hour.ram) for hour in usage.history] == [
        ("1970-01-01T00:00:00+00:00", 1.5, 896),
        ("1970-01-01T01:00:00+00:00", 2.0, 1024),
    ]
    hub.at += 30 * 86_400
    asyncio.run(hub.tenants.sample())
    assert len(asyncio.run(hub.tenants.usage("red")).history) == 1


def test_a_user_without_a_team_is_in_the_default_one(hub: Hub) -> None:
    for name in ("ann", "bob"):
        asyncio.run(hub.users.ensure(name))
    hub.create("red")
    hub.put("red", "bob", "admin")
    assert asyncio.run(hub.tenants.of_user("ann")) == [Member("default", "ann", Role.MEMBER, "default")]
    assert asyncio.run(hub.tenants.of_user("bob")) == [Member("red", "bob", Role.ADMIN, "local")]
    assert [m.user for m in asyncio.run(hub.tenants.members("default"))] == ["ann"]
    assert {t.name: t.members for t in asyncio.run(hub.tenants.list())} == {"default": 1, "red": 1}
    gone = asyncio.run(hub.tenants.remove_member("red", "bob"))
    assert gone.role == "admin"
    assert [m.user for m in asyncio.run(hub.tenants.members("default"))] == ["ann", "bob"]
    with refused(Reason.NOT_FOUND, "team red has no member bob"):
        asyncio.run(hub.tenants.remove_member("red", "bob"))
    with refused(Reason.INVALID, "the roles are member and admin"):
        hub.put("red", "bob", "king")
    with refused(Reason.NOT_FOUND):
        hub.put("blue", "bob")


def test_group_members_come_and_go_with_their_groups_and_local_ones_stay(hub: Hub) -> None:
    for name in ("red", "blue", "green"):
        hub.create(name)
    hub.put("green", "bob")

    def sync(*groups: str) -> list[tuple[str, str]]:
        return [(m.tenant, m.source) for m in asyncio.run(hub.tenants.sync_groups("bob", groups))]

    assert sync("red", "green", "elsewhere") == [("green", "local"), ("red", "group")]
    written = hub.db.group_commit
    assert sync("red", "green", "elsewhere") == [("green", "local"), ("red", "group")]
    assert hub.db.group_commit == written
    assert sync("blue") == [("blue", "group"), ("green", "local")]
    with refused(Reason.WRONG_STATE, "because of the JupyterHub group blue"):
        asyncio.run(hub.tenants.remove_member("blue", "bob"))
    hub.put("blue", "bob", "admin")
    assert sync() == [("blue", "local"), ("green", "local")]
    actions = [(a, t) for _, a, t in hub.audit() if a.startswith("member")]
    assert actions == [("member.set", "bob")] * 2 + [("member.set", "bob"), ("member.remove", "bob")] + [
        ("member.set", "bob")
    ]


def test_a_user_keeps_one_number_for_ever(hub: Hub) -> None:
    async def together() -> list[User]:
        return await asyncio.gather(*(hub.users.ensure(n) for n in ("ann", "bob", "ann", "ann")))

    users = asyncio.run(together())
    assert users[0] == users[2] == users[3]
    assert {u.number for u in users} == {1, 2}
    assert asyncio.run(hub.users.get("ann")) == users[0]
    assert asyncio.run(hub.users.among(["ann", "eve"])) == {
        "ann": UserStanding(True, False, ["default"], "default"),
        "eve": UserStanding(False, False, ["default"], "default"),
    }
    with refused(Reason.NOT_FOUND, "user eve does not exist"):
        asyncio.run(hub.users.get("eve"))


def test_work_goes_to_the_users_choice_else_to_their_first_tenant(hub: Hub) -> None:
    assert asyncio.run(hub.users.ensure("bob")).default_tenant == "default"
    hub.create("red")
    hub.create("blue")
    with refused(Reason.INVALID, "bob is in default, not in red"):
        asyncio.run(hub.users.set_default_tenant("bob", "red"))
    hub.put("red", "bob")
    assert asyncio.run(hub.users.get("bob")).default_tenant == "red"
    hub.put("blue", "bob")
    assert asyncio.run(hub.users.get("bob")).default_tenant == "blue"
    asyncio.run(hub.users.set_default_tenant("bob", "red"))
    assert asyncio.run(hub.users.ensure("bob")).default_tenant == "red"
    asyncio.run(hub.tenants.remove_member("red", "bob"))
    assert asyncio.run(hub.users.get("bob")).default_tenant == "blue"
    with refused(Reason.NOT_FOUND):
        asyncio.run(hub.users.set_default_tenant("eve", "red"))


def test_nodes_show_what_is_there_what_may_be_given_out_and_who_holds_it(hub: Hub) -> None:
    hub.hold("ann", "default", cpu=0.2, ram=1024, user="ann")
    (node,) = asyncio.run(hub.node_list.list())
    assert (node.cpu, node.cpu_allocatable, node.cpu_inuse) == (2.0, 4.0, 0.2)
    assert (node.ram, node.ram_inuse, node.labels) == (8192, 1024, {"zone": "a"})
    assert [str(h.holder) for h in node.holders] == ["ann's notebook"]


def test_the_default_tenant_is_made_again_if_it_was_lost(hub: Hub) -> None:
    with hub.db.begin() as tx:
        tx.tenants.remove("default")
    asyncio.run(hub.tenants.start())
    assert [t.name for t in asyncio.run(hub.tenants.list())] == ["default"]


# --- tenants that share


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            {"cpu": 4, "borrowing_limit": {"cpu": 1}},
            "borrowing_limit has no meaning without a cohort or a parent",
        ),
        (
            {"cpu": 4, "lending_limit": {"cpu": 1}},
            "red has nobody to lend to; name one, or leave lending_limit out",
        ),
        ({"cpu": 4, "cohort": "main", "borrowing_limit": {"gpu": 1}}, "without a quota of gpu"),
        (
            {"cpu": 4, "cohort": "main", "lending_limit": {"cpu": 4.5}},
            "lending_limit.cpu is 4.5 and the quota is 4 cpu",
        ),
        (
            {"ram": 4, "reserved": {"ram": 5}},
            "reserved.ram is 5 and the quota is 4 MiB ram: red cannot reserve more",
        ),
        ({"gpu_kinds": {"a100": 1}, "reserved": {"gpu:a100": 2}}, "is 2 and the quota is 1 a100 gpu"),
        ({"parent": "org", "cohort": "main"}, "name one of the two"),
        ({"cohort": "org"}, "cohort org is the name of a team"),
        ({"cohort": "red"}, "cohort red is the name of a team"),
    ],
)
def test_a_place_among_others_that_means_nothing_is_refused(
    hub: Hub, asked: dict[str, object], words: str
) -> None:
    hub.create("org", cpu=10)
    with refused(Reason.INVALID, words.replace("(", "\\(")):
        hub.create("red", **asked)
    assert "red" not in [t.name for t in asyncio.run(hub.tenants.list())]


def test_a_tenant_is_not_named_like_a_cohort(hub: Hub) -> None:
    hub.create("red", cpu=1, cohort="main")
    with refused(Reason.INVALID, "cannot have the name of an existing cohort"):
        hub.create("main")
    assert hub.update("red", cpu=2, cohort="main").cpu == 2.0


def test_a_limit_without_a_quota_may_be_reserved_and_children_may_have_more_than_their_parent(
    hub: Hub,
) -> None:
    hub.create("org", cpu=4)
    assert hub.create("lab", cpu=6, parent="org").cpu == 6.0
    assert asyncio.run(hub.tenants.get("lab")).free == {"cpu": 4.0}, "the parent caps it"
    assert hub.create("red", reserved={"cpu": 2}).reserved == {"cpu": 2.0}
    assert asyncio.run(hub.tenants.get("lab")).free == {"cpu": 2.0}, "of four cores two are kept free for red"


def test_nobody_reserves_what_those_above_have_not_got(hub: Hub) -> None:
    hub.create("org", cpu=2)
    hub.create("lab", parent="org")
    with refused(Reason.INVALID, "kid reserves 3 cpu, but org above it has a quota of 2.*reserve at most 2"):
        hub.create("kid", parent="lab", reserved={"cpu": 3})
    assert hub.create("kid", parent="lab", reserved={"cpu": 2}).reserved == {"cpu": 2.0}
    with refused(Reason.INVALID, "kid reserves 2 cpu, but org above it has a quota of 1"):
        hub.update("org", cpu=1)
    with refused(Reason.INVALID, "kid reserves 2 cpu, but lab above it has a quota of 1.5"):
        hub.update("lab", parent="org", cpu=1.5)
    hub.update("kid", parent="lab", reserved={"cpu": 1})
    assert hub.update("org", cpu=1).cpu == 1.0


def test_storage_is_independent_of_nodes_and_cannot_be_reserved_on_them(hub: Hub) -> None:
    with refused(Reason.INVALID, "reserved.rom is 1 GiB.*leave it out"):
        hub.create("red", reserved={"rom": 2**30})


def test_borrowed_lent_lendable_and_free_amounts_are_the_same_in_the_list_and_alone(hub: Hub) -> None:
    hub.create("red", cpu=2, cohort="main")
    hub.create("blue", cpu=4, cohort="main", lending_limit={"cpu": 1})
    hub.create("green", cpu=4, cohort="main")
    hub.create("solo", cpu=3, gpu_kinds={"a100": 1})
    hub.hold("a", "red", "am", cpu=4)
    hub.hold("b", "green", "am", cpu=1.5)
    hub.hold("c", "solo", "am", cpu=3)
    hub.update("solo", cpu=1, gpu_kinds={"a100": 1})
    shown = {t.name: t for t in asyncio.run(hub.tenants.list())}
    standing = {n: (t.borrowed, t.lent, t.lendable, t.free) for n, t in shown.items()}
    # 2 are borrowed; blue leaves 1 idle and green 2.5, and both count in proportion
    assert standing == {
        "red": ({"cpu": 2.0}, {}, {}, {"cpu": 1.5}),
        "blue": ({}, {"cpu": 0.571}, {"cpu": 0.429}, {"cpu": 3 + 1.5}),
        "green": ({}, {"cpu": 1.429}, {"cpu": 1.071}, {"cpu": 1.5}),
        "solo": ({}, {}, {}, {"cpu": 0.0, "gpu:a100": 1.0}),
        "default": ({}, {}, {}, {}),
    }
    assert {n: asyncio.run(hub.tenants.get(n)) for n in shown} == shown
    assert asyncio.run(hub.tenants.usage("red")).tenant == shown["red"]


def test_a_change_of_sharing_is_audited(hub: Hub) -> None:
    hub.create("red", cpu=2)
    hub.update("red", cpu=2, cohort="main", borrowing_limit={"cpu": 1})
    with hub.db.reading() as tx:
        entry = tx.audit.page()[0][0]
    unset = {"cohort": None, "borrowing_limit": None}
    assert entry.detail == {"before": unset, "after": {"cohort": "main", "borrowing_limit": {"cpu": 1.0}}}
    hub.update("red", cpu=0.5, cohort="main", borrowing_limit={"cpu": 1})
    hub.update("red", cpu=0.5)
    with hub.db.reading() as tx:
        alone, to_half = tx.audit.page()[0][:2]
    assert to_half.detail == {"before": {"cpu": 2.0}, "after": {"cpu": 0.5}}
    assert alone.detail == {"before": {"cohort": "main", "borrowing_limit": {"cpu": 1.0}}, "after": unset}

"""What is kept free is the same to the scheduling core and to the ledger, whatever is reserved, booked, held and down."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete

from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.domain.tenants.tenant import Lowering, Tenant
from mlp_hub.domain.workload.booking import BookedWindow
from mlp_hub.domain.workload.ledger import RequestPhase, ResourceRequest
from mlp_hub.executors.nodes import Condition, ConditionKind, NodeInfo
from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.model.types import SchedulingPolicy, Snapshot
from mlp_hub.service.admission.snapshot import node_of, queue_of, read_holders
from mlp_hub.service.quota.accounting import Quotas
from mlp_hub.service.tenants.view import TenantView
from mlp_hub.store import Database
from mlp_hub.store.tables import booking, resource_request, tenant
from mlp_language.message import NOTHING

NOW = 1000.0
_folder = tempfile.TemporaryDirectory(prefix="mlp-kept-free-")
_db = Database(str(Path(_folder.name) / "mlp.sqlite"))
_db.create_schema()
NAMES = ("blue", "lab", "red", "solo")
DOWN = Condition(ConditionKind.NOT_READY)
DIMENSIONS = ("cpu", "gpu", "gpu:a100", "ram")

small = st.integers(0, 6)
maybe = st.none() | small


@st.composite
def quotas(draw: st.DrawFn) -> Quota:
    kinds = draw(st.dictionaries(st.just("a100"), small, max_size=1))
    return Quota(cpu=draw(maybe), gpu=draw(maybe), ram=draw(maybe), kinds=kinds)


@st.composite
def tenants(draw: st.DrawFn) -> list[Tenant]:
    found = []
    for name in NAMES:
        lowered, reserved = None, draw(st.none() | quotas())
        if draw(st.booleans()):
            still = None if reserved is None else draw(quotas())  # what is not reserved is not lowered
            lowered = Lowering(0, 0.5, draw(st.none() | quotas()), still, NOTHING)
        found.append(
            Tenant(
                name,
                draw(quotas()),
                cohort="main" if name in ("red", "blue") else None,
                parent="red" if name == "lab" else None,
                lending_limit=draw(st.none() | quotas()),
                reserved=reserved,
                lowered=lowered,
            )
        )
    return sorted(found, key=lambda t: t.parent is not None)


amounts = st.builds(
    lambda cpu, gpu, ram: Resources(cpu, gpu, ram, kinds=(("a100", gpu),) if gpu else ()), small, small, small
)
windows = st.tuples(st.sampled_from(NAMES), st.integers(990, 1010), st.integers(1, 20), quotas())
nodes = st.lists(st.tuples(amounts, st.booleans()), min_size=1, max_size=3)


OTHERS = Resources(2, 1, 3)


@settings(
    max_examples=40, phases=[Phase.generate], deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
@given(
    tenants(),
    st.lists(windows, max_size=3),
    nodes,
    st.lists(st.tuples(st.sampled_from(NAMES), amounts), max_size=4),
)
def test_the_core_and_the_ledger_leave_everybody_the_same(owners, booked, made, held) -> None:
    infos = []
    for i, (amount, up) in enumerate(made):
        size = Resources(amount.cpu, amount.gpu, amount.ram)
        infos.append(NodeInfo(f"n{i}", size, size, "a100", conditions=() if up else (DOWN,), others=OTHERS))
    with _db.begin() as tx:
        for table in (resource_request, booking):
            tx.connection.execute(delete(table))
        for name in ("lab", *NAMES):
            tx.connection.execute(delete(tenant).where(tenant.c.name == name))
        for owner in owners:
            tx.tenants.insert(owner, 0)
            tx.tenants.set_idle(owner.name, 0.0, owner.lowered)
        for i, (name, start, length, amount) in enumerate(booked):
            tx.bookings.insert(BookedWindow(name, f"w{i}", start, start + length, amount))
        for i, (name, amount) in enumerate(held):
            tx.ledger.put(ResourceRequest(f"h{i}", "sp", name, amount, RequestPhase.CONFIRMED, NOW))
    with _db.reading() as tx:
        holders = read_holders(tx, NOW)
        core = Core.from_snapshot(
            Snapshot(
                tuple(node_of(n, holders) for n in infos),
                tuple(queue_of(t, holders, (0.0, ())) for t in holders.tenants),
                (),
                (),
                SchedulingPolicy(),
                bookings=holders.bookings,
            ),
            NOW,
        )
        core.state.begin_cycle(NOW)
        ledger = Quotas(tx, NOW, infos)
        for name in NAMES:
            for dimension in DIMENSIONS:
                mine = ledger.tree(name).available(name, dimension)
                assert mine == core.state.quotas.available(name, dimension), (name, dimension)
        # and what is shown is that too, for one tenant as in the list of all
        shown = TenantView(lambda: NOW, lambda: infos, "none", lambda _: 0)
        listed = {t.name: t for t in shown.all(tx)}
        for name in NAMES:
            alone = shown.one(tx, tx.tenants.get(name))
            assert (alone.free, alone.lent) == (listed[name].free, listed[name].lent)

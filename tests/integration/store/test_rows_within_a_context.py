"""Rows of owned objects that are not within a context are not there, on both databases, whatever is asked."""

from __future__ import annotations

import pytest

from mlp_hub.domain.apps.app import App, AppPhase, AppSpec
from mlp_hub.domain.jobs.job import Job, JobSpec, Phase, Target
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.stored.dataset import Dataset, DatasetPhase
from mlp_hub.domain.stored.model import ModelPhase, ModelSource, ModelVersion
from mlp_hub.domain.stored.storage import StoredItem, StoredKind
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.domain.tenants.tenant_context import NOBODY, SYSTEM, TenantContext
from mlp_hub.store import Database
from mlp_hub.store.tx import Tx

OWNERS = (("ann", "red"), ("ann", "blue"), ("bob", "red"), ("bob", "blue"))


def uid(kind: str, at: int) -> str:
    return f"{kind}{at}".ljust(26, "0")


@pytest.fixture
def filled(db: Database) -> Database:
    """Two people with one of each kind in each of two tenants, called after the tenant."""
    with db.begin() as tx:
        for name in ("red", "blue"):
            tx.tenants.insert(Tenant(name), 0.0)
        tx.users.ensure_all(["ann", "bob"], 0.0)
        for at, (user, tenant) in enumerate(OWNERS):
            per_worker = Resources(cpu=1000, ram=512)
            spec = JobSpec(name=tenant, user=user, tenant=tenant, runtime="plain", per_worker=per_worker)
            tx.jobs.insert(Job(uid("j", at), spec, Phase.QUEUED, Target.RUN, submitted_at=float(at)))
            data = StoredItem(uid("d", at), StoredKind.DATASET, tenant, user, tenant, float(at))
            tx.stored.put(data)
            tx.datasets.put(Dataset(data, DatasetPhase.READY, 100))
            model = StoredItem(uid("m", at), StoredKind.MODEL, tenant, user, f"{tenant}@1", float(at))
            tx.stored.put(model)
            tx.models.put(ModelVersion(model, tenant, 1, ModelPhase.READY, ModelSource("x"), "{}"))
            app = AppSpec(per_worker, command="serve")
            tx.apps.put(
                App(uid("a", at), user, tenant, tenant, app, 31_000 + at, AppPhase.RUNNING, float(at))
            )
    return db


CONTEXTS = [
    (NOBODY, set()),
    (TenantContext("eve"), set()),
    (TenantContext("ann"), {("ann", "red"), ("ann", "blue")}),
    (TenantContext("eve", frozenset({"red"})), {("ann", "red"), ("bob", "red")}),
    (TenantContext("ann", frozenset({"red"})), {("ann", "red"), ("ann", "blue"), ("bob", "red")}),
    (TenantContext("root", None), set(OWNERS)),
    (SYSTEM, set(OWNERS)),
]


@pytest.mark.parametrize(("context", "within"), CONTEXTS)
def test_nothing_outside_a_context_is_found_listed_or_counted(
    filled: Database, context: TenantContext, within: set[tuple[str, str]]
) -> None:
    def found(tx: Tx) -> dict[str, set[tuple[str, str]]]:
        seen: dict[str, set[tuple[str, str]]] = {}
        for at, (user, tenant) in enumerate(OWNERS):
            by_name = {
                "job": tx.jobs.find(context, user, tenant),
                "dataset": tx.datasets.find(context, user, tenant),
                "model": tx.models.find(context, user, tenant),
                "app": tx.apps.find(context, user, tenant),
            }
            by_uid = {
                "job by uid": tx.jobs.get(context, uid("j", at)),
                "dataset by uid": tx.datasets.get(context, uid("d", at)),
                "model by uid": tx.models.get(context, uid("m", at)),
                "app by uid": tx.apps.get(context, uid("a", at)),
            }
            for kind, one in (by_name | by_uid).items():
                seen.setdefault(kind, set())
                if one is not None:
                    seen[kind].add((user, tenant))
            latest = tx.jobs.latest(context, user, [tenant])
            listed = {
                "jobs latest": [(j.spec.user, j.spec.tenant) for j in latest.values()],
                "jobs": [(j.spec.user, j.spec.tenant) for j in tx.jobs.page(context, user=user)[0]],
                "datasets": [(d.item.user, d.item.tenant) for d in tx.datasets.page(context, user, limit=9)],
                "models": [(m.item.user, m.item.tenant) for m in tx.models.page(context, user, limit=9)],
                "apps": [(a.user, a.tenant) for a in tx.apps.page(context, user, limit=9)],
                "jobs of all": [(j.spec.user, j.spec.tenant) for j in tx.jobs.page(context)[0]],
                "jobs active": [(j.spec.user, j.spec.tenant) for j in tx.jobs.active(context)],
                "apps of all": [(a.user, a.tenant) for a in tx.apps.all(context)],
                "datasets in phases": [
                    (d.item.user, d.item.tenant) for d in tx.datasets.in_phases(context, tuple(DatasetPhase))
                ],
            }
            for kind, rows in listed.items():
                seen.setdefault(kind, set()).update(rows)
        return seen

    with filled.begin() as tx:
        seen = found(tx)
        assert seen == dict.fromkeys(seen, within)
        for user in ("ann", "bob"):
            mine = sum(one[0] == user for one in within)
            assert sum(tx.jobs.count_by_phase(context, user).values()) == mine

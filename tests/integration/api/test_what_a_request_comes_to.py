"""What the gatekeeper says that a request may come to, and that the use cases come to nothing else, whatever a handler asks for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mlp_api.apps.apps import AppScale
from mlp_api.jobs.jobs import Heartbeat, JobNote, Resubmit
from mlp_api.jobs.runs import RunsAct, RunUpdate
from mlp_api.stored.datasets import DatasetHeartbeat
from mlp_api.stored.models import ModelCreate
from mlp_hub.api.auth.authorize import authorize
from mlp_hub.api.auth.principal import CallerKind, Principal, parse_scopes
from mlp_hub.api.auth.scopes import ACCESS, ADMIN_SCOPES, USER_SCOPES
from mlp_hub.api.routes import Relation
from mlp_hub.api.table import all_routes
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.tenants.tenant_context import TenantContext
from mlp_hub.service.platform import Platform
from support.rigs.api_rig import ApiRig, a_model

GET_JOB = next(r for r in all_routes() if r.title == "GET /users/{user}/jobs/{job}")
TENANT = next(r for r in all_routes() if r.title == "GET /tenants/{tenant}")
ANN = {"user": "ann", "job": "digits"}


def person(name: str, *scopes: str) -> Principal:
    everywhere, own = parse_scopes(name, [ACCESS, *(scopes or map(str, USER_SCOPES))])
    return Principal(CallerKind.USER, name, everywhere, own)


CONTEXTS = [
    (person("ann"), ANN, TenantContext("ann")),
    (person("rita"), ANN, TenantContext("rita", frozenset({"red"}))),
    (person("admin", *map(str, ADMIN_SCOPES)), ANN, TenantContext("admin", None)),
    (Principal(CallerKind.JOB, "ann", job="digits@1"), ANN, TenantContext("ann")),
]


@pytest.mark.parametrize(("who", "params", "context"), CONTEXTS, ids=["owner", "leads", "platform", "job"])
def test_a_request_comes_to_ones_own_and_what_it_showed_one_to_lead(
    rig: ApiRig, who: Principal, params: dict[str, str], context: TenantContext
) -> None:
    assert GET_JOB.relation is Relation.OWNED
    assert rig.run(authorize(GET_JOB, who, dict(params), rig.service.platform)) == context


def test_a_member_of_a_tenant_reaches_its_objects_there(rig: ApiRig) -> None:
    found = rig.run(authorize(TENANT, person("ann"), {"tenant": "red"}, rig.service.platform))
    assert found == TenantContext("ann", frozenset({"red"}))


Case = Callable[[Platform, TenantContext], Awaitable[Any]]


async def _first(frames: Any) -> Any:
    return await anext(frames)


CASES: dict[str, Case] = {
    "job": lambda p, c: p.jobs.get(c, "ann", "digits"),
    "why": lambda p, c: p.jobs.why(c, "ann", "digits"),
    "events": lambda p, c: p.jobs.events(c, "ann", "digits"),
    "attempts": lambda p, c: p.jobs.attempts(c, "ann", "digits"),
    "log": lambda p, c: p.jobs.log_chunk(c, "ann", "digits", 0),
    "files": lambda p, c: p.jobs.files(c, "ann", "digits", "", after="", limit=9),
    "file": lambda p, c: p.jobs.open_file(c, "ann", "digits", "ckpt/last.pt"),
    "cancel": lambda p, c: p.jobs.cancel(c, "ann", "digits"),
    "suspend": lambda p, c: p.jobs.suspend(c, "ann", "digits"),
    "resume": lambda p, c: p.jobs.resume(c, "ann", "digits"),
    "resubmit": lambda p, c: p.jobs.resubmit(c, "ann", "digits", Resubmit()),
    "delete": lambda p, c: p.jobs.delete(c, "ann", "digits"),
    "heartbeat": lambda p, c: p.jobs.heartbeat(c, "ann", "digits", Heartbeat(state="running", progress=1)),
    "decisions": lambda p, c: p.decisions.decisions_of(c, "ann", "digits"),
    "stream": lambda p, c: _first(p.watch(c, "ann", "digits")),
    "log stream": lambda p, c: _first(p.follow_log(c, "ann", "digits", 0, since=0, tail=None)),
    "points": lambda p, c: p.metrics.some(c, "ann", "digits", 0, 9),
    "finish": lambda p, c: p.metrics.finish(c, "ann", "digits"),
    "forget": lambda p, c: p.metrics.delete(c, "ann", "digits"),
    "run": lambda p, c: p.runs.get(c, "ann", "digits"),
    "note": lambda p, c: p.runs.update(c, "ann", "digits", RunUpdate(note="mine"), actor="eve"),
    "note of a job": lambda p, c: p.jobs.note(c, "ann", "digits", JobNote(note="mine"), actor="eve"),
    "curves": lambda p, c: p.runs.curves(c, "ann", "digits"),
    "curves of several": lambda p, c: p.runs.curves_of(c, "ann", "digits,digits@1"),
    "model": lambda p, c: p.models.get(c, "ann", "net"),
    "stage": lambda p, c: p.models.move(c, "ann", "net", "production", actor="eve"),
    "model files": lambda p, c: p.models.files(c, "ann", "net", "", after="", limit=9),
    "mlmodel": lambda p, c: p.models.mlmodel(c, "ann", "net"),
    "register": lambda p, c: p.models.register(c, "ann", ModelCreate(name="net", src="digits")),
    "delete model": lambda p, c: p.models.delete(c, "ann", "net", actor="eve"),
    "dataset": lambda p, c: p.datasets.get(c, "ann", "pets"),
    "beat": lambda p, c: p.datasets.heartbeat(c, "ann", "pets", DatasetHeartbeat(state="ready", progress=1)),
    "delete dataset": lambda p, c: p.datasets.delete(c, "ann", "pets", actor="eve"),
    "read": lambda p, c: p.datasets.access(c, "ann", "pets", write=False),
    "write": lambda p, c: p.datasets.access(c, "ann", "pets", write=True),
    "app": lambda p, c: p.apps.get(c, "ann", "site"),
    "app that is open": lambda p, c: p.apps.visitors.get(c, "ann", "site"),
    "scale": lambda p, c: p.apps.scale(c, "ann", "site", AppScale(replicas=1)),
    "app log": lambda p, c: p.apps.log_chunk(c, "ann", "site", 0, since=0, limit=9, tail=None),
    "delete app": lambda p, c: p.apps.delete(c, "ann", "site", actor="eve"),
    "keys": lambda p, c: p.app_gate.keys(c, "ann", "site"),
    "key": lambda p, c: p.app_gate.add_key(c, "ann", "site", "k", actor="eve"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_no_use_case_reaches_objects_outside_its_context(rig: ApiRig, case: Case) -> None:
    rig.site("ann", rig.ann)

    async def asked(context: TenantContext) -> Any:
        return await case(rig.service.platform, context)

    for context in (TenantContext("eve"), TenantContext("bob", frozenset({"blue"}))):
        with pytest.raises(Refused) as refused:
            rig.run(asked(context))
        assert refused.value.reason is Reason.NOT_FOUND


def test_lists_contain_only_objects_within_the_context(rig: ApiRig) -> None:
    rig.site("ann", rig.ann)
    a_model(rig, "listed")

    async def lists(context: TenantContext) -> list[int]:
        p = rig.service.platform
        found = [
            await p.jobs.list(context, "ann"),
            await p.models.list(context, "ann"),
            await p.datasets.list(context, "ann"),
            await p.apps.list(context, "ann"),
        ]
        runs = [await p.runs.search(context, user="ann"), await p.runs.named(context, "ann", "digits")]
        return [*(len(one[0]) for one in found), *(len(page.runs) for page in runs)]

    assert rig.run(lists(TenantContext("eve"))) == [0] * 6
    leads = rig.run(lists(TenantContext("rita", frozenset({"red"}))))
    assert leads[:3] == rig.run(lists(TenantContext("ann")))[:3]
    assert all(leads[:3])
    assert leads[4:] == rig.run(lists(TenantContext("ann")))[4:] != [0, 0]


@pytest.mark.parametrize("act", ["cancel", "delete", "tag", "untag"])
def test_bulk_actions_change_no_object_outside_the_context(rig: ApiRig, act: str) -> None:
    rig.site("ann", rig.ann)
    tags = ["mine"] if "tag" in act else []

    async def done() -> list[str]:
        asked = RunsAct(act=act, runs=["digits"], tags=tags)  # type: ignore[arg-type]
        outcomes = await rig.service.platform.runs.act(TenantContext("eve"), "ann", asked)
        return [one.reason for one in outcomes]

    assert rig.run(done()) == ["NotFound"]

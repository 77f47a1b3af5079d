"""Headlines of all reasons: a dozen words at most, each sentence of them once as English reads it (`golden/en.txt`).

A changed wording changes the file: `pytest --golden` writes it anew.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import mlp_hub.scheduler
from mlp_hub.domain.errors import Reason
from mlp_hub.domain.facts import LABELS
from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.scheduler.assign.feasible import check_possible
from mlp_hub.scheduler.core import Core, plan_cycle
from mlp_hub.scheduler.model.types import (
    AdmittedWorkload,
    CapacityWindow,
    Preempt,
    Resize,
    Snapshot,
    TenantQueue,
    Verdict,
    Wait,
)
from mlp_hub.scheduler.nodes.states import GROUP
from mlp_hub.scheduler.reasons.verdicts import waits_for_its_turn, waits_for_preempted
from mlp_language.message import Message, msg
from mlp_language.render import ENGLISH, render
from support.said import job_ref
from support.scheduler.scheduler_builders import job, node, runs, snapshot, tenant

GOLDEN = Path(__file__).parents[1] / "language" / "golden" / "en.txt"
MOST_WORDS = 12
NOW = 1_900_051_200.0  # 2030-03-18 08:00 UTC
TEAMS = (tenant("red", cpu=3, cohort="main"), tenant("blue", cpu=3, cohort="main"))
SOURCES = ("reasons/verdicts.py", "reasons/quota.py", "assign/feasible.py")


def verdicts(s: Snapshot) -> dict[str, Verdict]:
    found: dict[str, Verdict] = {}
    for d in plan_cycle(s, NOW):
        if isinstance(d, Wait | Preempt) or (isinstance(d, Resize) and d.verdict is not None):
            assert d.verdict is not None
            found[d.uid] = d.verdict
    return found


def held(workers: int, *, since: float = NOW - 10, **more: object) -> AdmittedWorkload:
    return runs(job("held", workers=workers, **more), *["n"] * workers, since=since)


def lent(since: float) -> Snapshot:
    own = job("own", workers=2, tenant="blue", user="bob", at=NOW)
    theirs = held(6, since=since)
    return snapshot(own, tenants=TEAMS, nodes=(node(cpu=6),), running=(theirs,), min_run_s=3600)


def impossible(**asked: object) -> Verdict:
    s = snapshot(nodes=(node("n-0", gpu=1, gpu_kind="a100"), node("n-1")), tenants=(tenant(cpu=64),))
    verdict = check_possible(s, job("a", **asked))
    assert verdict is not None
    return verdict


def scenes() -> Iterator[Verdict]:
    yield from verdicts(lent(NOW - 10)).values()
    yield from verdicts(
        replace(lent(NOW - 10), tenants=(*TEAMS[:1], tenant("blue", cpu=1, cohort="main")))
    ).values()
    busy = snapshot(job("a", workers=2), tenants=(tenant(cpu=2),), running=(held(2),))
    yield from verdicts(busy).values()
    replica = runs(job("r", cpu=2, replica=("lin", 0)), "n")
    yield from verdicts(snapshot(job("a"), tenants=(tenant(cpu=2),), running=(replica,))).values()
    servers = tenant(cpu=2, used=Resources(cpu=500), others=("ann's notebook",))
    yield from verdicts(snapshot(job("a", workers=2), job("b", cpu=2), tenants=(servers,))).values()
    for servers_hold, jobs_hold in ((2000, 2.0), (4000, 0.0)):
        red = tenant(cpu=4, cohort="c", used=Resources(cpu=servers_hold), others=("ann's notebook",))
        blue = tenant("blue", cpu=1, cohort="c", used=Resources(cpu=1000))
        beside = runs(job("beside", cpu=jobs_hold), "n")
        waits = snapshot(job("a"), nodes=(node(cpu=64),), tenants=(red, blue), running=(beside,))
        yield from verdicts(waits).values()
    gpus = TenantQueue("red", Quota(gpu=2000), used=Resources(gpu=1000), others=("ann's notebook",))
    on_gpus = snapshot(job("a", workers=2, gpu=1), job("b", gpu=2), nodes=(node(gpu=2),), tenants=(gpus,))
    yield from verdicts(on_gpus).values()
    yield from verdicts(snapshot(job("a", workers=3), tenants=(tenant(cpu=2, used=Resources()),))).values()
    yield from verdicts(snapshot(job("a", cpu=3), tenants=(tenant(cpu=2),))).values()
    for workers in (1, 2):
        many = job("a", workers=workers, gpu=3)
        yield from verdicts(
            snapshot(many, nodes=(node(gpu=8),), tenants=(TenantQueue("red", Quota(gpu=2000)),))
        ).values()
    yield from verdicts(
        snapshot(job("a", gpu=3), nodes=(node(gpu=4),), tenants=(TenantQueue("red", Quota(gpu=2000)),))
    ).values()
    yield from verdicts(snapshot(job("a", workers=5, cpu=2), nodes=(node("n"), node("m")))).values()
    low = replace(held(4, priority=50), started_at=NOW - 10)
    urgent = snapshot(job("urgent", workers=2), running=(low,), min_run_s=3600)
    yield from verdicts(urgent).values()
    core = Core.from_snapshot(urgent, NOW)
    core.plan(NOW)
    due = core.verdict("urgent", NOW + 3600)
    assert due is not None
    yield due.verdict
    yield from verdicts(replace(urgent, policy=replace(urgent.policy, min_run_s=0.0))).values()
    wide = runs(job("wide", workers=1, workers_max=3, priority=50), "n", "n", "n", since=NOW - 10)
    yield from verdicts(snapshot(job("urgent", workers=3), running=(wide,))).values()
    yield from verdicts(snapshot(job("one", workers=2), running=(replace(wide),))).values()
    together = snapshot(
        job("a", workers=4, topology="same-node"), nodes=(node("n"), node("m")), running=(held(1),)
    )
    yield from verdicts(replace(together, running=(held(1), runs(job("other"), "m", since=NOW)))).values()
    yield from verdicts(snapshot(job("a"), nodes=(node(up=False, wrong=("Cordoned",)),))).values()
    out = [node(name, up=False, wrong=("Drained",)) for name in ("n1", "n2")]
    yield from verdicts(snapshot(job("a"), nodes=(out[0],))).values()
    yield from verdicts(snapshot(job("a"), nodes=tuple(out))).values()
    absent = node("a100+1", gpu=1, gpu_kind="a100", up=False, wrong=("Absent",), labels={GROUP: "a100"})
    yield from verdicts(snapshot(job("a", gpu=1), nodes=(node(), absent))).values()
    yield from verdicts(snapshot(job("a", tenant="green"))).values()
    first = Core.from_snapshot(snapshot(job("a")), NOW).verdict("a")
    assert first is not None
    yield first.verdict
    booked = CapacityWindow("blue", NOW + 1200, NOW + 36_000, Quota(cpu=4000), "demo")
    two = (tenant(cpu=4), tenant("blue", cpu=4))
    yield from verdicts(replace(snapshot(job("a"), tenants=two), bookings=(booked,))).values()
    fits = Core.from_snapshot(snapshot(job("a")), NOW)
    fits.state.waiting["a"].cls.reason = Reason.WAITING_FOR_QUOTA
    freed = fits.verdict("a")
    assert freed is not None
    yield freed.verdict
    ahead = job("ahead", user="bob")
    for by in (None, NOW + 80, float("inf")):
        yield waits_for_its_turn(job("a"), ahead, by, NOW)
    yield waits_for_its_turn(job("a"), None, None, NOW)
    for for_it in (False, True):
        yield waits_for_preempted([job_ref("low")], ("1",), for_it=for_it)
    yield waits_for_preempted([], ())
    yield impossible(workers=65)
    yield impossible(cpu=65)
    yield impossible(cpu=5)
    yield impossible(workers=3, ram=8192)
    yield impossible(workers=2, ps=9, ram=8192)
    yield impossible(gpu=1, gpu_kind="h100")
    yield impossible(workers=5, topology="same-node")
    yield impossible(tenant="blue")
    bare = check_possible(snapshot(nodes=(node(),)), job("a", gpu=1, gpu_kind="h100"))
    assert bare is not None
    yield bare


def parts(message: Message) -> Iterator[str]:
    yield message.template
    for value in message.args.values():
        if isinstance(value, Message):
            yield from parts(value)


def test_every_headline_reads_as_it_is_written_down(golden: Callable[[Path, str], None]) -> None:
    found = sorted({f"{v.reason.value}: {render(v.headline, ENGLISH)}" for v in scenes()})
    facts = sorted(f"fact {key}: {render(label, ENGLISH)}" for key, label in LABELS.items())
    golden(GOLDEN, "\n".join([*found, "", *facts, ""]))


def test_every_headline_has_twelve_words_at_most() -> None:
    for verdict in scenes():
        text = render(verdict.headline, ENGLISH)
        words = [w for w in text.split() if re.search("[a-z]", w)]
        assert len(words) <= MOST_WORDS, text


def test_every_sentence_of_the_reasons_is_among_them() -> None:
    root = Path(mlp_hub.scheduler.__file__).parent
    written = set()
    for source in SOURCES:
        for at in ast.walk(ast.parse((root / source).read_text())):
            if isinstance(at, ast.Call) and isinstance(at.func, ast.Name) and at.func.id in ("msg", "msgs"):
                template = at.args[0]
                assert isinstance(template, ast.Constant)
                written.add(template.value)
    used = {part for v in scenes() for part in parts(v.headline)}
    assert {t for t in written - used if t.endswith((".", "{way}", "{have}"))} == set()


@pytest.mark.parametrize("key", sorted({f.key for v in scenes() for f in v.facts}))
def test_every_fact_has_its_words(key: str) -> None:
    assert LABELS[key] != msg("")

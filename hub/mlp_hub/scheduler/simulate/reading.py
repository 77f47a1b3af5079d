"""From text to a checked `Scenario`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mlp_hub.domain.resources import MILLI, Quota, Resources
from mlp_hub.scheduler.model import Booking, Node, SchedulingPolicy, TenantQueue
from mlp_hub.scheduler.ordering import POLICIES
from mlp_hub.scheduler.placement import TOPOLOGIES
from mlp_hub.scheduler.simulate import keys
from mlp_hub.scheduler.simulate.errors import Faults
from mlp_hub.scheduler.simulate.fields import Fields, alike, shown
from mlp_hub.scheduler.simulate.keys import DIMENSIONS, MOST_JOBS, MOST_NODES, MOST_WORKERS, PRIORITIES
from mlp_hub.scheduler.simulate.scenario import (
    Cancel,
    Event,
    JobLine,
    NodeDown,
    NodeUp,
    QuotaChange,
    Scenario,
    changed,
)
from mlp_hub.scheduler.simulate.text import parse

_RANGE = re.compile(r"(\d{1,9})(?::(\d{1,9}))?")
_NUMBERED = re.compile(r"(.+)-(0|[1-9]\d*)", re.DOTALL)
_TOPOLOGY = re.compile(r"(required|preferred):[^\s:]{1,80}")


def read(text: str) -> Scenario:
    """Read a scenario from YAML or JSON.

    Raises `ScenarioError` with every fault found, each with its place and with what would be right. A job that can
    never run is no fault of the scenario: its run says `refused`.
    """
    return read_value(parse(text))


def read_value(value: object) -> Scenario:
    """Read a scenario from plain values, as JSON has them. Raises `ScenarioError`."""
    faults = Faults()
    top = Fields(faults, "", value, keys.TOP)
    if top.broken:
        faults = Faults()
        faults.add("", f"a scenario is a mapping that begins with `version: 1`; this is {_what(value)}")
        faults.check()
    version = top.given.get("version", 1)
    if isinstance(version, bool) or version != 1:
        top.wrong("version", f"{shown(version)} is unknown; this is version 1")
    scenario = _Reader(faults, top).scenario()
    faults.check()
    return scenario


@dataclass(frozen=True, slots=True)
class _Flavor:
    """A kind of node: it selects the nodes that have its labels, and gives their GPUs its name."""

    name: str
    labels: Mapping[str, str]


class _Reader:
    def __init__(self, faults: Faults, top: Fields) -> None:
        self.faults = faults
        self.top = top

    def scenario(self) -> Scenario:
        policy = self._policy()
        nodes = self._nodes(self._flavors())
        tenants = self._tenants()
        priorities = self._priorities()
        jobs = self._jobs(tenants, priorities)
        events = self._events(nodes, tenants, jobs)
        until = self.top.number_or_none("until")
        bookings = self._bookings(tenants)
        return Scenario(policy, nodes, tenants, priorities, jobs, events, until, bookings)

    def _each(self, key: str, of: Sequence[keys.Key]) -> list[Fields]:
        """Return the lines of a list that are mappings."""
        lines = [Fields(self.faults, f"{key}[{i}]", line, of) for i, line in enumerate(self.top.items(key))]
        return [line for line in lines if not line.broken]

    def _policy(self) -> SchedulingPolicy:
        if not self.top.has("policy"):
            return SchedulingPolicy()
        f = Fields(self.faults, "policy", self.top.given["policy"], keys.POLICY)
        return SchedulingPolicy(
            name=f.choice("name", "fair", POLICIES),
            half_life_s=f.number("half_life_s", 3600.0, above_zero=True),
            backfill=f.flag("backfill", default=True),
            preemption=f.flag("preemption", default=True),
            placement=f.choice("placement", "fgd", keys.PLACEMENTS),
            min_run_s=f.number("min_run_s", 0.0),
            restart_cost_s=f.number("restart_cost_s", 0.0),
            aging_s=f.number("aging_s", 600.0),
            seed=f.whole("seed", 0),
            patience=f.number("patience", 2.5, above_zero=True),
        )

    def _flavors(self) -> Sequence[_Flavor]:
        lines = self._each("flavors", keys.FLAVOR)
        flavors = [_Flavor(f.text("name", ""), f.labels("labels")) for f in lines]
        self._unique(lines, "flavor")
        return flavors

    def _unique(self, lines: Sequence[Fields], what: str) -> None:
        seen: dict[str, str] = {}
        for f in lines:
            name = f.given.get("name")
            if isinstance(name, str) and name:
                if name in seen:
                    f.wrong(
                        "name", f"there is a {what} {name} already, at {seen[name]}; give it another name"
                    )
                else:
                    seen[name] = f.place

    def _nodes(self, flavors: Sequence[_Flavor]) -> tuple[Node, ...]:
        found: dict[str, Node] = {}
        lines = self._each("nodes", keys.NODE)
        for f in lines:
            name = f.text("name", "")
            count = f.whole("count", 1, least=1, most=MOST_NODES) if "count" in f.given else None
            labels = f.labels("labels")
            gpu = f.whole("gpu", 0, most=1_000_000) * MILLI
            kind = f.text_or_none("gpu_kind")
            if gpu and kind is None:
                kind = next(
                    (v.name for v in flavors if v.labels and v.labels.items() <= labels.items()), None
                )
            taints = f.items("taints")
            if not all(isinstance(taint, str) and taint for taint in taints):
                f.wrong("taints", "holds something that is no text; write a list of text")
                taints = []
            node = Node(
                name,
                Resources(f.milli("cpu", 8000), gpu, f.whole("ram", 32768)),
                gpu_kind=kind,
                labels=labels,
                taints=tuple(taints),
            )
            if not name:
                continue
            if len(found) + (count or 1) > MOST_NODES:
                f.wrong("count", f"that makes more than {MOST_NODES} nodes, the most there may be")
                break
            for n in [name] if count is None else [f"{name}-{i}" for i in range(count)]:
                if n in found:
                    f.wrong("name", f"there is a node {n} already; give this one another name")
                    break
                found[n] = node if count is None else replace(node, name=n)
        return tuple(found.values())

    def _tenants(self) -> tuple[TenantQueue, ...]:
        lines = self._each("tenants", keys.TENANT)
        self._unique(lines, "tenant")
        names = {str(f.given.get("name")) for f in lines}
        parents: dict[str, str] = {}
        places: dict[str, Fields] = {}
        tenants: dict[str, TenantQueue] = {}
        for f in lines:
            name = f.text("name", "")
            parent = f.one_of("parent", "tenant", names)
            tenant = TenantQueue(
                name,
                self._quota(f, "quota") or Quota(),
                f.number("weight", 1.0),
                parent=parent,
                cohort=f.text_or_none("cohort"),
                borrowing_limit=self._quota(f, "borrowing_limit"),
                lending_limit=self._quota(f, "lending_limit"),
                reserved=self._quota(f, "reserved"),
            )
            if name and name not in tenants:
                tenants[name] = tenant
                places[name] = f
                if parent:
                    parents[name] = parent
        self._no_cycles(parents, places)
        return tuple(tenants.values())

    def _no_cycles(self, parents: Mapping[str, str], places: Mapping[str, Fields]) -> None:
        done: set[str] = set()
        for name in parents:
            path: dict[str, None] = {}
            at: str | None = name
            while at is not None and at not in done and at not in path:
                path[at] = None
                at = parents.get(at)
            if at is not None and at in path:
                way = list(path)
                cycle = [*way[way.index(at) :], at]
                places[at].wrong("parent", f"the tree goes round in a circle: {' > '.join(cycle[:10])}")
            done.update(path)

    def _bookings(self, tenants: Sequence[TenantQueue]) -> tuple[Booking, ...]:
        names = {t.name for t in tenants}
        bookings = []
        for f in self._each("bookings", keys.BOOKING):
            tenant = f.one_of("tenant", "tenant", names) or ""
            start, end = f.number("from", 0.0), f.number("until", 0.0)
            if end <= start and f.has("from") and f.has("until"):
                f.wrong(
                    "until", f"the window closes at {end:g} and opens at {start:g}; it has to close later"
                )
            amount = self._quota(f, "amount")
            if amount is None:
                f.wrong("amount", "nothing is booked; name an amount, as `{gpu: 8}`")
            bookings.append(Booking(tenant, start, end, amount or Quota()))
        return tuple(bookings)

    def _quota(self, f: Fields, key: str) -> Quota | None:
        return changed(Quota(), limits) if (limits := self._limits(f, key)) else None

    def _limits(self, f: Fields, key: str) -> dict[str, int | None]:
        """Read limits by dimension, in inner units; null is no limit."""
        given = f.mapping(key)
        inner = Fields(self.faults, f.at(key), given, [_any(d) for d in (*DIMENSIONS, *_kinds(given))])
        limits: dict[str, int | None] = {}
        for d in given:
            if not isinstance(d, str) or (d not in DIMENSIONS and d not in _kinds(given)):
                continue
            if given[d] is None:
                limits[d] = None
            elif d.startswith(("cpu", "gpu")):
                limits[d] = inner.milli(d, 0)
            else:
                limits[d] = inner.whole(d, 0, most=10**18)
        return limits

    def _priorities(self) -> dict[str, int]:
        given = self.top.mapping("priorities")
        f = Fields(self.faults, "priorities", given, [_any(k) for k in given if isinstance(k, str)])
        return {**PRIORITIES, **{k: f.whole(k, 0) for k in given if isinstance(k, str)}}

    def _jobs(self, tenants: Sequence[TenantQueue], priorities: Mapping[str, int]) -> tuple[JobLine, ...]:
        lines = self._each("jobs", keys.JOB)
        names = [t.name for t in tenants]
        usual = "default" if "default" in names else names[0] if len(names) == 1 else None
        known = frozenset(names)
        classes = tuple(priorities)
        found: list[JobLine] = []
        total = 0
        for f in lines:
            line = self._job(f, usual, known, classes)
            total += line.count
            found.append(line)
        if total > MOST_JOBS:
            self.faults.add(
                "jobs", f"these lines make {total} jobs; the most is {MOST_JOBS}, so simulate a part of them"
            )
        self._unique(lines, "job")
        by_name = {line.name: line for line in found}
        for f, line in zip(lines, found, strict=True):
            numbered = _NUMBERED.fullmatch(line.name) if line.count == 1 else None
            other = by_name.get(numbered[1]) if numbered else None
            if numbered and other and other.count > 1 and int(numbered[2]) < other.count:
                f.wrong(
                    "name", f"the line {other.name} makes a job {line.name} too; give this one another name"
                )
        return tuple(found)

    def _job(
        self, f: Fields, usual: str | None, tenants: Collection[str], classes: tuple[str, ...]
    ) -> JobLine:
        tenant = f.one_of("tenant", "tenant", tenants) or usual
        if tenant is None and not f.has("tenant"):
            f.wrong("tenant", f"is missing, and there is none called default; choose one of {_some(tenants)}")
        low, high = self._workers(f)
        return JobLine(
            name=f.text("name", ""),
            tenant=tenant or "",
            user=f.text("user", "user"),
            submit=f.number("submit", 0.0),
            duration=f.number("duration", 200.0),
            workers_min=low,
            workers_max=high,
            per_worker=Resources(f.milli("cpu", 1000), f.milli("gpu", 0), f.whole("ram", 100)),
            gpu_kind=f.text_or_none("gpu_kind"),
            priority=f.choice("priority", "normal", classes),
            time_limit=f.number_or_none("time_limit", above_zero=True),
            estimate=f.number_or_none("estimate", above_zero=True),
            runtime=f.choice("runtime", "mpi", keys.RUNTIMES),
            topology=self._topology(f),
            preemptible=f.flag("preemptible", default=True),
            checkpoint_every=f.number_or_none("checkpoint_every", above_zero=True),
            count=f.whole("count", 1, least=1),
            every=f.number("every", 0.0),
        )

    def _workers(self, f: Fields) -> tuple[int, int]:
        value = f.given.get("workers", 1)
        if not isinstance(value, str):
            n = f.whole("workers", 1, least=1, most=MOST_WORKERS)
            return n, n
        match = _RANGE.fullmatch(value)
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not match:
            f.wrong("workers", f'{shown(value)} is neither a whole number nor a range; write 4 or "2:4"')
        elif low < 1:
            f.wrong("workers", f"{shown(value)} begins below 1; a job has at least one worker")
        elif low > high:
            f.wrong("workers", f'{shown(value)} has its least above its most; write "{high}:{low}"')
        elif high > MOST_WORKERS:
            f.wrong("workers", f"{high} is too many; the most is {MOST_WORKERS}")
        else:
            return low, high
        return 1, 1

    def _topology(self, f: Fields) -> str | None:
        value: Any = f.given.get("topology")
        if value is None:
            return None
        text = value
        if isinstance(value, Mapping) and len(value) == 1:
            ((how, label),) = value.items()
            text = f"{how}:{label}" if isinstance(how, str) and isinstance(label, str) else None
        if isinstance(text, str) and (text in TOPOLOGIES or _TOPOLOGY.fullmatch(text)):
            return text
        f.wrong(
            "topology",
            f"{shown(value)} is unknown; write {', '.join(TOPOLOGIES)}, {{required: LABEL}} or {{preferred: LABEL}}",
        )
        return None

    def _events(
        self, nodes: Sequence[Node], tenants: Sequence[TenantQueue], jobs: Sequence[JobLine]
    ) -> tuple[Event, ...]:
        node_names = {n.name for n in nodes}
        tenant_names = {t.name for t in tenants}
        lines = {line.name: line for line in jobs}
        found: list[Event] = []
        for f in self._each("events", keys.EVENT):
            at = f.number("at", 0.0)
            whats = [k for k in ("node_down", "node_up", "tenant", "cancel") if k in f.given]
            if len(whats) != 1:
                says = f"says {' and '.join(whats)}" if whats else "says nothing that happens"
                self.faults.add(
                    f.place, f"{says}; write one of node_down, node_up, cancel, or tenant with quota"
                )
                continue
            what = whats[0]
            if not f.has(what):
                f.wrong(what, "is null; write a name")
                continue
            if ("quota" in f.given) != (what == "tenant"):
                f.wrong("quota", "is missing" if what == "tenant" else "goes with tenant only")
            if what == "node_down" and (node := f.one_of(what, "node", node_names)):
                found.append(NodeDown(at, node))
            elif what == "node_up" and (node := f.one_of(what, "node", node_names)):
                found.append(NodeUp(at, node))
            elif what == "tenant" and (tenant := f.one_of(what, "tenant", tenant_names)):
                found.append(QuotaChange(at, tenant, self._limits(f, "quota")))
            elif what == "cancel" and (job := f.text(what, "")):
                self._is_job(f, job, lines)
                found.append(Cancel(at, job))
        return tuple(sorted(found, key=lambda e: e.at))

    def _is_job(self, f: Fields, job: str, lines: Mapping[str, JobLine]) -> None:
        line = lines.get(job)
        if line is not None and line.count > 1:
            f.wrong("cancel", f"{job} makes {line.count} jobs; name one, as in {job}-0")
        numbered = _NUMBERED.fullmatch(job) if line is None else None
        of = lines.get(numbered[1]) if numbered else None
        if line is None and not (numbered and of and of.count > 1 and int(numbered[2]) < of.count):
            f.wrong("cancel", f"there is no job {job}{alike(job, lines)}")


def _kinds(given: Mapping[Any, Any]) -> list[str]:
    return [d for d in given if isinstance(d, str) and d.startswith("gpu:") and d[4:].strip()]


def _any(name: str) -> keys.Key:
    return keys.Key(name, "", "", "")


def _some(names: Collection[str]) -> str:
    few = sorted(names)[:8]
    return ", ".join(few) + (" or another" if len(names) > len(few) else "") if few else "those in `tenants`"


def _what(value: object) -> str:
    return "empty" if value is None else shown(value)

"""From text to a checked `Scenario`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from msgspec.structs import asdict

from mlp_hub.domain.dimensions import MILLI, WHOLE
from mlp_hub.domain.resources import Quota, Resources, counted
from mlp_hub.scheduler.model.types import CapacityWindow, Node, SchedulingPolicy, TenantQueue
from mlp_hub.scheduler.nodes.placement import TOPOLOGIES
from mlp_hub.simulate.errors import Faults
from mlp_hub.simulate.forms import (
    MOST_NODES,
    MOST_WORKERS,
    PRIORITIES,
    BookingForm,
    EventForm,
    FlavorForm,
    Form,
    JobForm,
    NodeForm,
    PolicyForm,
    ScenarioForm,
    TenantForm,
)
from mlp_hub.simulate.mapping_reader import Part, alike, shown, take
from mlp_hub.simulate.scenario import (
    Cancel,
    Event,
    JobLine,
    NodeDown,
    NodeUp,
    QuotaChange,
    Scenario,
    changed,
)
from mlp_hub.simulate.text import parse
from mlp_hub.simulate.within import check_size, check_within_quota

_NUMBERED = re.compile(r"(.+)-(0|[1-9]\d*)", re.DOTALL)
_TOPOLOGY = re.compile(r"(required|preferred):[^\s:]{1,80}")
F = TypeVar("F", bound=Form)
Limits = Mapping[str, float | None]


def read(text: str) -> Scenario:
    """Read a scenario from YAML or JSON.

    Raises `ScenarioError` with every fault found, each with its place and its correction. A job that
    can never run is not a fault of the scenario: its run has `refused`.
    """
    return read_value(parse(text))


def read_value(value: object) -> Scenario:
    """Read a scenario from plain values, as JSON has them. Raises `ScenarioError`."""
    faults = Faults()
    if not isinstance(value, dict):
        what = "empty" if value is None else shown(value)
        faults.add("", f"a scenario is a mapping that begins with `version: 1`; this is {what}")
    elif top := take(ScenarioForm, value, "", faults):
        scenario = _Reader(faults, top.form).scenario()
    faults.check()
    return scenario


@dataclass(frozen=True, slots=True)
class _Flavor:
    """A kind of node: it selects the nodes that have its labels, and gives their GPUs its name."""

    name: str
    labels: Mapping[str, str]


class _Reader:
    def __init__(self, faults: Faults, top: ScenarioForm) -> None:
        self.faults = faults
        self.top = top

    def scenario(self) -> Scenario:
        policy = self._policy()
        nodes = self._nodes(self._flavors())
        tenants = self._tenants()
        priorities = {**PRIORITIES, **(self.top.priorities or {})}
        jobs = self._jobs(tenants, priorities)
        events = self._events(nodes, tenants, jobs)
        bookings = self._bookings(tenants)
        return Scenario(policy, nodes, tenants, priorities, jobs, events, self.top.until, bookings)

    def _each(self, form: type[F], key: str, lines: Sequence[object]) -> list[Part[F]]:
        """Return the lines of a list that are mappings."""
        parts = (take(form, line, f"{key}[{i}]", self.faults) for i, line in enumerate(lines))
        return [part for part in parts if part]

    def _policy(self) -> SchedulingPolicy:
        part = None if self.top.policy is None else take(PolicyForm, self.top.policy, "policy", self.faults)
        return SchedulingPolicy(**asdict(part.form)) if part else SchedulingPolicy()

    def _flavors(self) -> Sequence[_Flavor]:
        parts = self._each(FlavorForm, "flavors", self.top.flavors)
        self._unique(parts, "flavor")
        return [_Flavor(part.form.name, _labels(part.form.labels)) for part in parts]

    def _unique(self, parts: Sequence[Part[Any]], what: str) -> None:
        seen: dict[str, str] = {}
        for part in parts:
            name = part.form.name
            if name and seen.setdefault(name, part.place) != part.place:
                part.wrong("name", f"there is a {what} {name} already, at {seen[name]}; give it another name")

    def _nodes(self, flavors: Sequence[_Flavor]) -> tuple[Node, ...]:
        found: dict[str, Node] = {}
        for part in self._each(NodeForm, "nodes", self.top.nodes):
            form, labels = part.form, _labels(part.form.labels)
            kind = form.gpu_kind
            if form.gpu and kind is None:
                kind = next(
                    (v.name for v in flavors if v.labels and v.labels.items() <= labels.items()), None
                )
            node = Node(
                form.name,
                Resources(_milli(part, "cpu", form.cpu), form.gpu * MILLI, form.ram),
                gpu_kind=kind,
                labels=labels,
                taints=tuple(form.taints),
            )
            if not form.name:
                continue
            if len(found) + (form.count or 1) > MOST_NODES:
                part.wrong("count", f"that makes more than {MOST_NODES} nodes, the most there may be")
                break
            for n in [form.name] if form.count is None else [f"{form.name}-{i}" for i in range(form.count)]:
                if n in found:
                    part.wrong("name", f"there is a node {n} already; give this one another name")
                    break
                found[n] = node if form.count is None else replace(node, name=n)
        return tuple(found.values())

    def _tenants(self) -> tuple[TenantQueue, ...]:
        parts = self._each(TenantForm, "tenants", self.top.tenants)
        self._unique(parts, "tenant")
        names = {part.form.name for part in parts}
        tenants: dict[str, tuple[TenantQueue, Part[TenantForm]]] = {}
        for part in parts:
            form = part.form
            check_within_quota(part)
            tenant = TenantQueue(
                form.name,
                _quota(part, "quota") or Quota(),
                form.weight,
                parent=form.parent if _is_there(part, "parent", "tenant", names) else None,
                cohort=form.cohort,
                borrowing_limit=_quota(part, "borrowing_limit"),
                lending_limit=_quota(part, "lending_limit"),
                reserved=_quota(part, "reserved"),
                queue_order=form.queue_order,
            )
            if form.name:
                tenants.setdefault(form.name, (tenant, part))
        self._no_cycles(tenants)
        return tuple(tenant for tenant, _ in tenants.values())

    @staticmethod
    def _no_cycles(tenants: Mapping[str, tuple[TenantQueue, Part[TenantForm]]]) -> None:
        done: set[str] = set()
        for name in tenants:
            path: dict[str, None] = {}
            at: str | None = name
            while at is not None and at not in done and at not in path:
                path[at] = None
                at = tenants[at][0].parent
            if at is not None and at in path:
                way = list(path)
                cycle = [*way[way.index(at) :], at]
                tenants[at][1].wrong("parent", f"the tree goes round in a circle: {' > '.join(cycle[:10])}")
            done.update(path)

    def _bookings(self, tenants: Sequence[TenantQueue]) -> tuple[CapacityWindow, ...]:
        names = {t.name for t in tenants}
        bookings = []
        for part in self._each(BookingForm, "bookings", self.top.bookings):
            form = part.form
            _is_there(part, "tenant", "tenant", names)
            if form.until <= form.start and {"from", "until"} <= part.given.keys():
                opens = f"the window closes at {form.until:g} and opens at {form.start:g}"
                part.wrong("until", f"{opens}; it has to close later")
            bookings.append(
                CapacityWindow(form.tenant, form.start, form.until, _quota(part, "amount") or Quota())
            )
        return tuple(bookings)

    def _jobs(self, tenants: Sequence[TenantQueue], priorities: Mapping[str, int]) -> tuple[JobLine, ...]:
        parts = self._each(JobForm, "jobs", self.top.jobs)
        names = [t.name for t in tenants]
        usual = "default" if "default" in names else names[0] if len(names) == 1 else None
        known = frozenset(names)
        found = [self._job(part, usual, known, priorities) for part in parts]
        check_size(self.faults, found)
        self._unique(parts, "job")
        by_name = {line.name: line for line in found}
        for part, line in zip(parts, found, strict=True):
            numbered = _NUMBERED.fullmatch(line.name) if line.count == 1 else None
            other = by_name.get(numbered[1]) if numbered else None
            if numbered and other and other.count > 1 and int(numbered[2]) < other.count:
                part.wrong(
                    "name", f"the line {other.name} makes a job {line.name} too; give this one another name"
                )
        return tuple(found)

    @staticmethod
    def _job(
        part: Part[JobForm], usual: str | None, tenants: Collection[str], priorities: Collection[str]
    ) -> JobLine:
        form = part.form
        tenant = form.tenant if _is_there(part, "tenant", "tenant", tenants) else usual
        if tenant is None and "tenant" not in part.given:
            part.wrong(
                "tenant", f"is missing, and there is none called default; choose one of {_some(tenants)}"
            )
        if form.priority not in priorities:
            part.wrong(
                "priority", f"{shown(form.priority)} is unknown; choose one of {', '.join(priorities)}"
            )
        low, high = _workers(part)
        return JobLine(
            name=form.name,
            tenant=tenant or "",
            user=form.user,
            submit=form.submit,
            duration=form.duration,
            workers_min=low,
            workers_max=high,
            per_worker=Resources(
                _milli(part, "cpu", form.cpu),
                _milli(part, "gpu", form.gpu),
                form.ram,
                amounts=counted(form.amounts or {}),
            ),
            gpu_kind=form.gpu_kind,
            priority=form.priority,
            time_limit=form.time_limit,
            estimate=form.estimate,
            runtime=form.runtime,
            topology=_topology(part),
            preemptible=form.preemptible,
            checkpoint_every=form.checkpoint_every,
            count=form.count,
            every=form.every,
        )

    def _events(
        self, nodes: Sequence[Node], tenants: Sequence[TenantQueue], jobs: Sequence[JobLine]
    ) -> tuple[Event, ...]:
        node_names = {n.name for n in nodes}
        tenant_names = {t.name for t in tenants}
        lines = {line.name: line for line in jobs}
        found: list[Event] = []
        for part in self._each(EventForm, "events", self.top.events):
            form = part.form
            whats = [k for k in ("node_down", "node_up", "tenant", "cancel") if k in part.given]
            if len(whats) != 1:
                says = f"says {' and '.join(whats)}" if whats else "says nothing that happens"
                self.faults.add(
                    part.place, f"{says}; write one of node_down, node_up, cancel, or tenant with quota"
                )
                continue
            what = whats[0]
            if part.given[what] is None:
                part.wrong(what, "is null; write a name")
            if ("quota" in part.given) != (what == "tenant"):
                part.wrong("quota", "is missing" if what == "tenant" else "goes with tenant only")
            if form.node_down and _is_there(part, what, "node", node_names):
                found.append(NodeDown(form.at, form.node_down))
            elif form.node_up and _is_there(part, what, "node", node_names):
                found.append(NodeUp(form.at, form.node_up))
            elif form.tenant and _is_there(part, what, "tenant", tenant_names):
                found.append(QuotaChange(form.at, form.tenant, _limits(part, "quota")))
            elif form.cancel:
                self._is_job(part, form.cancel, lines)
                found.append(Cancel(form.at, form.cancel))
        return tuple(sorted(found, key=lambda e: e.at))

    @staticmethod
    def _is_job(part: Part[EventForm], job: str, lines: Mapping[str, JobLine]) -> None:
        line = lines.get(job)
        if line is not None and line.count > 1:
            part.wrong("cancel", f"{job} makes {line.count} jobs; name one, as in {job}-0")
        numbered = _NUMBERED.fullmatch(job) if line is None else None
        of = lines.get(numbered[1]) if numbered else None
        if line is None and not (numbered and of and of.count > 1 and int(numbered[2]) < of.count):
            part.wrong("cancel", f"there is no job {job}{alike(job, lines)}")


def _is_there(part: Part[Any], key: str, what: str, names: Collection[str]) -> bool:
    """Whether the one that a key names is there; a fault where it names another."""
    name = getattr(part.form, key)
    if name and name not in names:
        part.wrong(key, f"there is no {what} {name}{alike(name, names)}")
    return bool(name) and name in names


def _labels(given: Mapping[str, str | float] | None) -> dict[str, str]:
    return {name: str(value) for name, value in (given or {}).items()}


def _milli(part: Part[Any], key: str, value: float) -> int:
    """Return cores or devices as thousandths."""
    amount = round(value * MILLI)
    if value and not amount:
        part.wrong(key, f"{value:g} is below a thousandth, the least amount there is")
    return amount


def _quota(part: Part[Any], key: str) -> Quota | None:
    return changed(Quota(), limits) if (limits := _limits(part, key)) else None


def _limits(part: Part[Any], key: str) -> dict[str, int | None]:
    """Return limits by dimension, in inner units; None is without limit."""
    given: Limits = getattr(part.form, key) or {}
    limits: dict[str, int | None] = {}
    for d, value in given.items():
        if value is None:
            limits[d] = None
        elif d not in WHOLE:
            limits[d] = _milli(part, f"{key}.{d}", value)
        else:
            if value != int(value):
                part.wrong(f"{key}.{d}", f"{value:g} is no whole number")
            limits[d] = int(value)
    return limits


def _workers(part: Part[JobForm]) -> tuple[int, int]:
    value = part.form.workers
    if isinstance(value, int):
        return value, value
    first, _, last = value.partition(":")
    low, high = int(first), int(last or first)
    if low < 1:
        part.wrong("workers", f"{shown(value)} begins below 1; a job has at least one worker")
    elif low > high:
        part.wrong("workers", f'{shown(value)} has its least above its most; write "{high}:{low}"')
    elif high > MOST_WORKERS:
        part.wrong("workers", f"{high} is too much; the most is {MOST_WORKERS}")
    else:
        return low, high
    return 1, 1


def _topology(part: Part[JobForm]) -> str | None:
    value = part.form.topology
    if value is None:
        return None
    text = value
    if isinstance(value, dict) and len(value) == 1:
        ((how, label),) = value.items()
        text = f"{how}:{label}" if isinstance(how, str) and isinstance(label, str) else None
    if isinstance(text, str) and (text in TOPOLOGIES or _TOPOLOGY.fullmatch(text)):
        return text
    choices = f"{', '.join(TOPOLOGIES)}, {{required: LABEL}} or {{preferred: LABEL}}"
    part.wrong("topology", f"{shown(value)} is unknown; write {choices}")
    return None


def _some(names: Collection[str]) -> str:
    few = sorted(names)[:8]
    return ", ".join(few) + (" or another" if len(names) > len(few) else "") if few else "those in `tenants`"

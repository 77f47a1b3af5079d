"""Values of gauges, and of counters that others keep, from memory and the last look at the database.

Nothing here passes over jobs: the board and the admission keep their counts with each change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from mlp_hub.domain.dimensions import BY_NAME, TABLE
from mlp_hub.domain.jobs.job import FINAL, Phase
from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.domain.workload.workload import KINDS
from mlp_hub.executors.node_use import NodeUse
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.service.audit.shipping import ShippingDelay
from mlp_hub.service.health.problems import Problem
from mlp_hub.service.monitoring import table as t
from mlp_hub.service.monitoring.instruments import Labels
from mlp_hub.service.monitoring.look import DatabaseLook
from mlp_hub.service.monitoring.parts import MonitoredParts

Value = float | tuple[list[int], float | None]
"""Number, or a histogram: numbers for each bucket, not added up, and the sum, None where nobody knows it."""
Family = tuple[t.MetricRow, Sequence[tuple[Labels, Value]]]
"""Metric with its values by labels."""

MIB = 2**20
"""Given: bytes of a MiB."""
_TITLES = {"ram": "memory", "rom": "storage"}
"""Names of resources, where the field has another word than the dimension."""
_SCALES = {"rom": 1.0} | {row.name: 1 / MIB for row in TABLE if row.unit.startswith("MiB")}
"""Parts of a dimension's own unit in its base unit: MiB in bytes, bytes in bytes."""


def scaled(dimension: str, amount: float) -> float:
    """Return an amount in the base unit: cores, devices, bytes."""
    scale = _SCALES.get(dimension)
    return amount / (BY_NAME[dimension].scale if scale is None else scale)


def amounts(of: Resources | Quota) -> Iterator[tuple[str, float]]:
    """Yield the amounts by resource, in base units, without limits that are not set."""
    for dimension, amount in of.items():
        yield title_of(dimension), scaled(dimension, amount)
    for kind, amount in dict(of.kinds).items():
        yield f"gpu:{kind}", scaled("gpu", amount)


def of_replica(
    parts: MonitoredParts, version: str, role: str, problems: Iterable[Problem]
) -> Iterator[Family]:
    """Yield the metrics that each replica shows."""
    lease, commits = parts.lease, parts.db.group_commit
    yield t.BUILD, [((version, parts.executor.name), 1.0)]
    yield t.REPLICA, [((lease.holder.rpartition("/")[2], role), 1.0)]
    yield t.PROBLEMS, [(labels, 1.0) for labels in dict.fromkeys((p.component, p.reason) for p in problems)]
    yield t.LEASE_HELD, [((), float(lease.is_held))]
    yield t.LEASE_EPOCH, [((), float(lease.epoch))]
    yield t.LEASE_TAKEOVERS, [((), float(lease.takeovers))]
    yield t.WRITES, [((), float(commits[1]))]
    yield t.CLUSTER_CALLS, [((asked,), float(n)) for asked, n in parts.executor.cluster_calls.items()]


def of_queue(parts: MonitoredParts, now: float) -> Iterator[Family]:
    """Yield the metrics of the queue, the jobs and the scheduler, of the replica that leads."""
    board, admission = parts.board, parts.admission
    tallies, reasons = board.tallies, admission.reason_counts.by_reason()
    fresh = max(0, len(board.waiting) - admission.reason_counts.total)
    yield t.JOBS, [((phase.value,), float(tallies.phases[phase])) for phase in Phase if phase not in FINAL]
    yield t.QUEUE, [(("New",), float(fresh)), *(((reason,), float(n)) for reason, (n, _) in reasons.items())]
    yield t.QUEUE_AGE, [((reason,), max(0.0, now - since)) for reason, (_, since) in reasons.items()]
    kinds = dict.fromkeys((kind.name for kind in KINDS.values()), 0)
    for request in admission.pending.values():
        kinds[KINDS[request.applier].name] += 1
    yield t.QUEUE_REQUESTS, [((kind,), float(n)) for kind, n in kinds.items()]
    yield t.WORK_DEPTH, [((state,), float(n)) for state, n in parts.queue.depth.items()]
    yield t.WORK_FAILURES, [((), float(parts.queue.failures))]


def of_tenants(parts: MonitoredParts, look: DatabaseLook) -> Iterator[Family]:
    """Yield the metrics of tenants: jobs, quota, use, shares and apps."""
    tallies = parts.board.tallies
    names = [tenant.name for tenant in look.tenants]
    yield (
        t.TENANT_JOBS,
        [
            ((name, state), float(counts[name]))
            for name in names
            for state, counts in (("waiting", tallies.waiting), ("running", tallies.running))
        ],
    )
    yield (
        t.QUOTA,
        [
            ((tenant.name, resource), amount)
            for tenant in look.tenants
            for resource, amount in amounts(tenant.quota)
        ],
    )
    nothing = Resources()
    held = {name: dict(amounts(look.held.get(name, nothing))) for name in names}
    yield t.HELD, [((name, resource), amount) for name in names for resource, amount in held[name].items()]
    yield _part_of_shares(t.BORROWED, "borrowed", look)
    yield _part_of_shares(t.LENT, "lent", look)
    yield of_over(look)
    kept = parts.admission.kept
    if kept is not None:
        state = kept.core.state
        yield t.SHARE, [((name,), state.weighted_share(name)) for name in names if name in state.queues]
    yield (
        t.USED,
        [
            *(((name, "cpu"), tallies.cpu[name] / 1000) for name in names),
            *(((name, "memory"), float(tallies.ram[name] * MIB)) for name in names),
        ],
    )
    apps = [(name, look.apps[name]) for name in names if name in look.apps]
    yield t.APP_REQUESTS, [((name,), float(use.requests)) for name, use in apps]
    yield t.APP_ERRORS, [((name,), float(use.errors)) for name, use in apps]
    yield (
        t.APP_BYTES,
        [
            ((name, way), float(n))
            for name, use in apps
            for way, n in (("in", use.bytes_in), ("out", use.bytes_out))
        ],
    )
    yield t.APP_LATENCY, [((name,), (_coarse(use.bounds_ms, use.latency), None)) for name, use in apps]


def of_over(look: DatabaseLook) -> Family:
    """Return the metric of tenants over their limits."""
    return _part_of_shares(t.OVER, "over", look)


def of_look(look: DatabaseLook, now: float) -> Iterator[Family]:
    """Yield the metrics of delays."""
    since = look.notices_since
    yield t.NOTICES_BEHIND, [((), float(look.notices_behind))]
    yield t.NOTICES_AGE, [((), 0.0 if since is None else max(0.0, now - since))]


def of_shipping(delays: Sequence[ShippingDelay], now: float) -> Iterator[Family]:
    """Yield the metrics of the audit log's receivers."""
    yield t.SHIPPING_BEHIND, [((one.place,), float(one.links)) for one in delays]
    ages = [(one.place, 0.0 if one.since is None else max(0.0, now - one.since)) for one in delays]
    yield t.SHIPPING_AGE, [((place,), age) for place, age in ages]


def of_exports(behind: Mapping[str, int]) -> Iterator[Family]:
    """Yield the metrics of exporters of metric points, by their kind."""
    if behind:
        yield t.EXPORT_BEHIND, [((kind,), float(n)) for kind, n in behind.items()]


def of_nodes(nodes: Sequence[NodeInfo], look: DatabaseLook) -> Iterator[Family]:
    """Yield the metrics of nodes that the scheduler knows."""
    yield t.NODE, [((node.name, node.gpu_kind or ""), 1.0) for node in nodes]
    yield t.NODE_READY, [((node.name,), float(node.ready)) for node in nodes]
    yield t.NODE_OPEN, [((node.name,), float(node.schedulable)) for node in nodes]
    conditions = dict.fromkeys((node.name, c.kind.value) for node in nodes for c in node.conditions)
    yield t.NODE_CONDITION, [(labels, 1.0) for labels in conditions]
    for row, of in (
        (t.NODE_CAPACITY, {node.name: node.capacity for node in nodes}),
        (t.NODE_ALLOCATABLE, {node.name: node.allocatable for node in nodes}),
        (t.NODE_HELD, {node.name: look.node_held.get(node.name, Resources()) for node in nodes}),
    ):
        yield row, [((name, resource), n) for name, amount in of.items() for resource, n in amounts(amount)]


def of_idle(parts: MonitoredParts, nodes: Sequence[NodeInfo]) -> Iterator[Family]:
    """Yield the metric of GPUs that are held and not used: zeroes of nodes with GPUs too, so that an alert ends."""
    idle = parts.idle_gpus()
    names = dict.fromkeys([*(node.name for node in nodes if node.capacity.gpu), *idle])
    yield t.NODE_IDLE_GPUS, [((name,), idle.get(name, 0.0)) for name in names]


def of_uses(uses: Sequence[NodeUse]) -> Iterator[Family]:
    """Yield the metrics of nodes' real use."""
    yield t.NODE_CPU, [((use.node, mode), s) for use in uses for mode, s in use.cpu_s.items()]
    yield t.NODE_CORES, _known(((use.node,), use.cpu) for use in uses)
    for row, fields in (
        (t.NODE_MEMORY, {"total": "memory_total", "available": "memory_available"}),
        (t.NODE_DISK, {"total": "disk_total", "available": "disk_available"}),
        (t.NODE_NETWORK, {"in": "received", "out": "sent"}),
    ):
        yield (
            row,
            _known(((use.node, label), getattr(use, name)) for use in uses for label, name in fields.items()),
        )
    gpus = [((use.node, str(gpu.index)), gpu) for use in uses for gpu in use.gpus]
    yield t.NODE_GPU, _known((labels, gpu.utilization) for labels, gpu in gpus)
    yield (
        t.NODE_GPU_MEMORY,
        [
            ((*labels, state), float(n))
            for labels, gpu in gpus
            for state, n in (("total", gpu.memory_total), ("used", gpu.memory_used))
        ],
    )
    yield t.NODE_GPU_TEMPERATURE, _known((labels, gpu.temperature_c) for labels, gpu in gpus)
    yield t.NODE_GPU_POWER, _known((labels, gpu.power_w) for labels, gpu in gpus)


def _part_of_shares(row: t.MetricRow, field: str, look: DatabaseLook) -> Family:
    return row, [
        ((name, title_of(dimension)), scaled(dimension.partition(":")[0], amount))
        for name, share in look.shares.items()
        for dimension, amount in getattr(share, field).items()
    ]


def _known(values: Iterable[tuple[Labels, float | None]]) -> list[tuple[Labels, float]]:
    return [(labels, float(value)) for labels, value in values if value is not None]


def title_of(dimension: str) -> str:
    """Return the name of a resource in labels: `memory` and `storage`, otherwise the dimension's own."""
    return _TITLES.get(dimension, dimension)


def _coarse(bounds_ms: Sequence[int], counts: Sequence[int]) -> list[int]:
    """Return the counts of the gateway's many buckets for the few of the table, and of slower requests."""
    wanted = t.APP_LATENCY.buckets
    found = [0] * (len(wanted) + 1)
    for bound, count in zip((*bounds_ms, float("inf")), counts, strict=False):
        found[next((i for i, most in enumerate(wanted) if bound <= most * 1000), len(wanted))] += count
    return found

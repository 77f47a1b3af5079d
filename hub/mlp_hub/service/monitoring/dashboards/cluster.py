"""Dashboard of the cluster: nodes, jobs and faults."""

from __future__ import annotations

from mlp_hub.service.monitoring.dashboards.model import (
    Dashboard,
    DashboardPanel,
    DashboardRow,
    DashboardVariable,
    PanelKind,
    PanelQuery,
    PanelUnit,
)
from mlp_hub.service.monitoring.dashboards.queries import RATE

_P, _Q, _U = DashboardPanel, PanelQuery, PanelUnit
_NUMBER, _TABLE = PanelKind.NUMBER, PanelKind.TABLE


def amounts(resource: str) -> tuple[PanelQuery, ...]:
    """Return the queries of a resource of all nodes: amounts for workloads, held and used."""
    return (
        _Q(f'sum(mlp_node_allocatable{{resource="{resource}"}})', "for workloads"),
        _Q(f'sum(mlp_node_held{{resource="{resource}"}})', "held"),
        _Q(f'sum(mlp_tenant_used{{resource="{resource}"}})', "used by jobs"),
    )


def held_part(title: str, resource: str) -> DashboardPanel:
    """Return the number of a resource's held part."""
    part = f'sum(mlp_node_held{{resource="{resource}"}}) / sum(mlp_node_allocatable{{resource="{resource}"}})'
    return _P(title, _U.RATIO, (_Q(part),), _NUMBER, 3)


CLUSTER = Dashboard(
    "cluster",
    "MLP Hub / Cluster",
    "Nodes and their use, jobs, and firing alerts.",
    (
        DashboardRow(
            "Now",
            (
                _P("Nodes ready", _U.NUMBER, (_Q("sum(mlp_node_ready)"),), _NUMBER, 3),
                _P("Nodes that take ranks", _U.NUMBER, (_Q("sum(mlp_node_schedulable)"),), _NUMBER, 3),
                _P("Jobs running", _U.NUMBER, (_Q('sum(mlp_jobs{phase="running"})'),), _NUMBER, 3),
                _P("Jobs waiting", _U.NUMBER, (_Q("sum(mlp_queue_jobs)"),), _NUMBER, 3),
                held_part("Cores held", "cpu"),
                held_part("Memory held", "memory"),
                held_part("GPUs held", "gpu"),
                _P("Problems", _U.NUMBER, (_Q("count(mlp_problem) or vector(0)"),), _NUMBER, 3),
            ),
        ),
        DashboardRow(
            "Held against used",
            (
                _P("Cores", _U.NUMBER, amounts("cpu")),
                _P("Memory", _U.BYTES, amounts("memory")),
                _P("GPUs", _U.NUMBER, amounts("gpu")[:2]),
            ),
        ),
        DashboardRow(
            "Nodes",
            (
                _P(
                    "Processors busy",
                    _U.RATIO,
                    (
                        _Q(
                            f'1 - sum by (node) (rate(mlp_node_cpu_seconds_total{{node=~"$node",mode=~"idle|iowait"}}{RATE}))'
                            f' / sum by (node) (rate(mlp_node_cpu_seconds_total{{node=~"$node"}}{RATE}))'
                            ' or sum by (node) (mlp_node_cpu_used_cores{node=~"$node"})'
                            ' / sum by (node) (mlp_node_capacity{node=~"$node",resource="cpu"})',
                            "{{node}}",
                        ),
                    ),
                    width=6,
                    help="In a cluster, it needs the metrics API.",
                ),
                _P(
                    "Memory used",
                    _U.RATIO,
                    (
                        _Q(
                            '1 - sum by (node) (mlp_node_memory_bytes{node=~"$node",state="available"})'
                            ' / sum by (node) (mlp_node_memory_bytes{node=~"$node",state="total"})',
                            "{{node}}",
                        ),
                    ),
                    width=6,
                ),
                _P(
                    "Disk used",
                    _U.RATIO,
                    (
                        _Q(
                            '1 - sum by (node) (mlp_node_disk_bytes{node=~"$node",state="available"})'
                            ' / sum by (node) (mlp_node_disk_bytes{node=~"$node",state="total"})',
                            "{{node}}",
                        ),
                    ),
                    width=6,
                ),
                _P(
                    "Network",
                    _U.BYTES_PER_SECOND,
                    (
                        _Q(
                            f'sum by (node, direction) (rate(mlp_node_network_bytes_total{{node=~"$node"}}{RATE}))',
                            "{{node}} {{direction}}",
                        ),
                    ),
                    width=6,
                ),
                _P(
                    "Cores held",
                    _U.RATIO,
                    (
                        _Q(
                            'sum by (node) (mlp_node_held{node=~"$node",resource="cpu"})'
                            ' / sum by (node) (mlp_node_allocatable{node=~"$node",resource="cpu"})',
                            "{{node}}",
                        ),
                    ),
                    width=12,
                ),
                _P(
                    "Memory held",
                    _U.RATIO,
                    (
                        _Q(
                            'sum by (node) (mlp_node_held{node=~"$node",resource="memory"})'
                            ' / sum by (node) (mlp_node_allocatable{node=~"$node",resource="memory"})',
                            "{{node}}",
                        ),
                    ),
                    width=12,
                ),
            ),
        ),
        DashboardRow(
            "GPUs",
            (
                _P(
                    "GPUs busy",
                    _U.RATIO,
                    (_Q('mlp_node_gpu_utilization_ratio{node=~"$node"}', "{{node}} {{gpu}}"),),
                    width=6,
                    help="By NVML, on one machine. In a cluster, use the DCGM exporter's own dashboard.",
                ),
                _P(
                    "GPUs held and idle",
                    _U.NUMBER,
                    (_Q('mlp_node_idle_gpus{node=~"$node"}', "{{node}}"),),
                    width=6,
                    help="GPUs of jobs that did nothing for an hour.",
                ),
                _P(
                    "GPU memory used",
                    _U.BYTES,
                    (_Q('mlp_node_gpu_memory_bytes{node=~"$node",state="used"}', "{{node}} {{gpu}}"),),
                    width=6,
                ),
                _P(
                    "GPU temperature",
                    _U.CELSIUS,
                    (_Q('mlp_node_gpu_temperature_celsius{node=~"$node"}', "{{node}} {{gpu}}"),),
                    width=6,
                ),
                _P(
                    "GPU power",
                    _U.WATTS,
                    (_Q('mlp_node_gpu_power_watts{node=~"$node"}', "{{node}} {{gpu}}"),),
                    width=6,
                ),
            ),
        ),
        DashboardRow(
            "Jobs",
            (
                _P(
                    "Jobs by phase",
                    _U.NUMBER,
                    (_Q("sum by (phase) (mlp_jobs)", "{{phase}}"),),
                    width=12,
                    stacked=True,
                ),
                _P(
                    "Ended jobs by result, per hour",
                    _U.NUMBER,
                    (_Q("sum by (result) (increase(mlp_jobs_ended_total[1h]))", "{{result}}"),),
                    width=12,
                    stacked=True,
                ),
                _P(
                    "Failed jobs by cause, per hour",
                    _U.NUMBER,
                    (_Q("sum by (cause) (increase(mlp_jobs_failed_total[1h])) > 0", "{{cause}}"),),
                    width=12,
                ),
                _P(
                    "Median time of ended jobs",
                    _U.SECONDS,
                    (
                        _Q(
                            "histogram_quantile(0.5, sum by (le, phase) (increase(mlp_job_phase_duration_seconds_bucket[1h])))",
                            "{{phase}}",
                        ),
                    ),
                    width=12,
                    help="Time that the jobs that ended within an hour spent waiting and running.",
                ),
            ),
        ),
        DashboardRow(
            "Faults",
            (
                _P(
                    "Firing alerts",
                    _U.NUMBER,
                    (
                        _Q(
                            'count by (alertname, severity, node, tenant, reason) (ALERTS{alertname=~"MLP.+",alertstate="firing"})'
                        ),
                    ),
                    _TABLE,
                    width=12,
                    help="Alerts of the rules that `mlp-hub monitor rules` prints.",
                ),
                _P(
                    "Conditions of nodes",
                    _U.NUMBER,
                    (_Q('sum by (node, condition) (mlp_node_condition{node=~"$node"})'),),
                    _TABLE,
                    width=12,
                    help="Empty if all nodes take ranks.",
                ),
            ),
        ),
    ),
    (DashboardVariable("node", "Node", "mlp_node_info"),),
)

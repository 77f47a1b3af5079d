"""Dashboard of the cluster: nodes, jobs and faults."""

from __future__ import annotations

from mlp_hub.service.monitoring.dashboards.model import (
    Dashboard,
    DashboardPanel,
    DashboardRow,
    DashboardVariable,
    PanelQuery,
    PanelUnit,
)
from mlp_hub.service.monitoring.dashboards.queries import RATE, by_node, listing, number, panel


def amounts(resource: str) -> tuple[PanelQuery, ...]:
    """Return the queries of a resource of all nodes: amounts for workloads, held and used."""
    return (
        PanelQuery(f'sum(mlp_node_allocatable{{resource="{resource}"}})', "for workloads"),
        PanelQuery(f'sum(mlp_node_held{{resource="{resource}"}})', "held"),
        PanelQuery(f'sum(mlp_tenant_used{{resource="{resource}"}})', "used by jobs"),
    )


def held_part(title: str, resource: str) -> DashboardPanel:
    """Return the number of a resource's held part."""
    part = f'sum(mlp_node_held{{resource="{resource}"}}) / sum(mlp_node_allocatable{{resource="{resource}"}})'
    return number(title, PanelUnit.RATIO, part, width=3)


def part_by_node(title: str, part: str, of: str, width: int, start: str = "") -> DashboardPanel:
    """Return the panel of a part of an amount by node; each is a metric with the labels beside the node's."""
    by = "sum by (node)"
    return by_node(
        title, PanelUnit.RATIO, f"{start}{by} ({_of_node(part)}) / {by} ({_of_node(of)})", width=width
    )


def used_by_node(title: str, metric: str) -> DashboardPanel:
    """Return the panel of the part of each node's amount that is not available."""
    return part_by_node(title, f'{metric},state="available"', f'{metric},state="total"', 6, "1 - ")


def held_by_node(title: str, resource: str) -> DashboardPanel:
    """Return the panel of the held part of each node's resource."""
    where = f',resource="{resource}"'
    return part_by_node(title, f"mlp_node_held{where}", f"mlp_node_allocatable{where}", 12)


def by_gpu(title: str, unit: PanelUnit, metric: str, help: str = "") -> DashboardPanel:  # noqa: A002 - the word of panels
    """Return the panel of a metric with a curve for each GPU."""
    return panel(title, unit, _of_node(metric), "{{node}} {{gpu}}", width=6, help=help)


def _of_node(metric: str) -> str:
    name, comma, where = metric.partition(",")
    return f'{name}{{node=~"$node"{comma}{where}}}'


CLUSTER = Dashboard(
    "cluster",
    "MLP Hub / Cluster",
    "Nodes and their use, jobs, and firing alerts.",
    (
        DashboardRow(
            "Now",
            (
                number("Nodes ready", PanelUnit.NUMBER, "sum(mlp_node_ready)", width=3),
                number("Nodes that take ranks", PanelUnit.NUMBER, "sum(mlp_node_schedulable)", width=3),
                number("Jobs running", PanelUnit.NUMBER, 'sum(mlp_jobs{phase="running"})', width=3),
                number("Jobs waiting", PanelUnit.NUMBER, "sum(mlp_queue_jobs)", width=3),
                held_part("Cores held", "cpu"),
                held_part("Memory held", "memory"),
                held_part("GPUs held", "gpu"),
                number("Problems", PanelUnit.NUMBER, "count(mlp_problem) or vector(0)", width=3),
            ),
        ),
        DashboardRow(
            "Held against used",
            (
                DashboardPanel("Cores", PanelUnit.NUMBER, amounts("cpu")),
                DashboardPanel("Memory", PanelUnit.BYTES, amounts("memory")),
                DashboardPanel("GPUs", PanelUnit.NUMBER, amounts("gpu")[:2]),
            ),
        ),
        DashboardRow(
            "Nodes",
            (
                by_node(
                    "Processors busy",
                    PanelUnit.RATIO,
                    f'1 - sum by (node) (rate(mlp_node_cpu_seconds_total{{node=~"$node",mode=~"idle|iowait"}}{RATE}))'
                    f' / sum by (node) (rate(mlp_node_cpu_seconds_total{{node=~"$node"}}{RATE}))'
                    ' or sum by (node) (mlp_node_cpu_used_cores{node=~"$node"})'
                    ' / sum by (node) (mlp_node_capacity{node=~"$node",resource="cpu"})',
                    width=6,
                    help="In a cluster, it needs the metrics API.",
                ),
                used_by_node("Memory used", "mlp_node_memory_bytes"),
                used_by_node("Disk used", "mlp_node_disk_bytes"),
                panel(
                    "Network",
                    PanelUnit.BYTES_PER_SECOND,
                    f'sum by (node, direction) (rate(mlp_node_network_bytes_total{{node=~"$node"}}{RATE}))',
                    "{{node}} {{direction}}",
                    width=6,
                ),
                held_by_node("Cores held", "cpu"),
                held_by_node("Memory held", "memory"),
            ),
        ),
        DashboardRow(
            "GPUs",
            (
                by_gpu(
                    "GPUs busy",
                    PanelUnit.RATIO,
                    "mlp_node_gpu_utilization_ratio",
                    "By NVML, on one machine. In a cluster, use the DCGM exporter's own dashboard.",
                ),
                by_node(
                    "GPUs held and idle",
                    PanelUnit.NUMBER,
                    _of_node("mlp_node_idle_gpus"),
                    width=6,
                    help="GPUs of jobs that did nothing for an hour.",
                ),
                by_gpu("GPU memory used", PanelUnit.BYTES, 'mlp_node_gpu_memory_bytes,state="used"'),
                by_gpu("GPU temperature", PanelUnit.CELSIUS, "mlp_node_gpu_temperature_celsius"),
                by_gpu("GPU power", PanelUnit.WATTS, "mlp_node_gpu_power_watts"),
            ),
        ),
        DashboardRow(
            "Jobs",
            (
                panel(
                    "Jobs by phase",
                    PanelUnit.NUMBER,
                    "sum by (phase) (mlp_jobs)",
                    "{{phase}}",
                    width=12,
                    stacked=True,
                ),
                panel(
                    "Ended jobs by result, per hour",
                    PanelUnit.NUMBER,
                    "sum by (result) (increase(mlp_jobs_ended_total[1h]))",
                    "{{result}}",
                    width=12,
                    stacked=True,
                ),
                panel(
                    "Failed jobs by cause, per hour",
                    PanelUnit.NUMBER,
                    "sum by (cause) (increase(mlp_jobs_failed_total[1h])) > 0",
                    "{{cause}}",
                    width=12,
                ),
                panel(
                    "Median time of ended jobs",
                    PanelUnit.SECONDS,
                    "histogram_quantile(0.5, sum by (le, phase) (increase(mlp_job_phase_duration_seconds_bucket[1h])))",
                    "{{phase}}",
                    width=12,
                    help="Time that the jobs that ended within an hour spent waiting and running.",
                ),
            ),
        ),
        DashboardRow(
            "Faults",
            (
                listing(
                    "Firing alerts",
                    PanelUnit.NUMBER,
                    'count by (alertname, severity, node, tenant, reason) (ALERTS{alertname=~"MLP.+",alertstate="firing"})',
                    width=12,
                    help="Alerts of the rules that `mlp-hub monitor rules` prints.",
                ),
                listing(
                    "Conditions of nodes",
                    PanelUnit.NUMBER,
                    'sum by (node, condition) (mlp_node_condition{node=~"$node"})',
                    width=12,
                    help="Empty if all nodes take ranks.",
                ),
            ),
        ),
    ),
    (DashboardVariable("node", "Node", "mlp_node_info"),),
)

"""Dashboards of teams: their use and quota, their apps, and the storage of teams and people."""

from __future__ import annotations

from mlp_hub.service.monitoring.dashboards.model import (
    Dashboard,
    DashboardPanel,
    DashboardRow,
    DashboardVariable,
    PanelQuery,
    PanelUnit,
)
from mlp_hub.service.monitoring.dashboards.queries import RATE, by_node, by_team, listing, number, panel

_TENANT = DashboardVariable("tenant", "Team", "mlp_tenant_jobs")
_OF = 'tenant=~"$tenant"'
_STORAGE = f'{{{_OF},resource="storage"}}'


def held_and_used(resource: str) -> tuple[PanelQuery, ...]:
    """Return the queries of a resource of teams: quota, held, used."""
    where = f'{{{_OF},resource="{resource}"}}'
    return (
        PanelQuery(f"sum by (tenant) (mlp_tenant_quota{where})", "{{tenant}} quota"),
        PanelQuery(f"sum by (tenant) (mlp_tenant_held{where})", "{{tenant}} held"),
        PanelQuery(f"sum by (tenant) (mlp_tenant_used{where})", "{{tenant}} used"),
    )


def mean(metric: str, title: str, legend: str = "{{tenant}}") -> DashboardPanel:
    """Return the panel of the mean of a histogram by team."""
    of = f"sum by (tenant) (rate({metric}_%s{{{_OF}}}{RATE}))"
    return panel(title, PanelUnit.SECONDS, f"{of % 'sum'} / {of % 'count'}", legend)


def held(title: str, unit: PanelUnit, resource: str) -> DashboardPanel:
    """Return the number of a resource's amount that the teams hold."""
    return number(title, unit, f'sum(mlp_tenant_held{{{_OF},resource="{resource}"}})', width=4)


def jobs(title: str, state: str) -> DashboardPanel:
    """Return the number of the teams' jobs in a state."""
    return number(title, PanelUnit.NUMBER, f'sum(mlp_tenant_jobs{{{_OF},state="{state}"}})', width=4)


def jobs_by_team(title: str, state: str) -> DashboardPanel:
    """Return the panel of jobs in a state by team."""
    query = f'sum by (tenant) (mlp_tenant_jobs{{{_OF},state="{state}"}})'
    return by_team(title, PanelUnit.NUMBER, query, stacked=True)


def cores_and_devices(title: str, metric: str, text: str) -> DashboardPanel:
    """Return the panel of a metric of cores and devices by team and resource."""
    query = f'sum by (tenant, resource) ({metric}{{{_OF},resource=~"cpu|gpu.*"}})'
    return panel(title, PanelUnit.NUMBER, query, "{{tenant}} {{resource}}", help=text)


def latency(title: str, part: float, text: str = "") -> DashboardPanel:
    """Return the panel of a quantile of the latency of apps by team."""
    rates = f"sum by (le, tenant) (rate(mlp_tenant_app_duration_seconds_bucket{{{_OF}}}{RATE}))"
    return by_team(title, PanelUnit.SECONDS, f"histogram_quantile({part}, {rates})", width=12, help=text)


def app_bytes(title: str, direction: str) -> DashboardPanel:
    """Return the panel of the bytes to or from apps by team."""
    query = f'sum by (tenant) (rate(mlp_tenant_app_bytes_total{{{_OF},direction="{direction}"}}{RATE}))'
    return by_team(title, PanelUnit.BYTES_PER_SECOND, query, width=12)


TENANT = Dashboard(
    "tenant",
    "MLP Hub / Team",
    "Quota, held and used amounts of teams, their jobs, and the requests of their members.",
    (
        DashboardRow(
            "Now",
            (
                jobs("Jobs running", "running"),
                jobs("Jobs waiting", "waiting"),
                held("Cores held", PanelUnit.NUMBER, "cpu"),
                held("GPUs held", PanelUnit.NUMBER, "gpu"),
                held("Memory held", PanelUnit.BYTES, "memory"),
                held("Storage", PanelUnit.BYTES, "storage"),
            ),
        ),
        DashboardRow(
            "Quota",
            (
                DashboardPanel("Cores", PanelUnit.NUMBER, held_and_used("cpu")),
                DashboardPanel("Memory", PanelUnit.BYTES, held_and_used("memory")),
                DashboardPanel("GPUs", PanelUnit.NUMBER, held_and_used("gpu")[:2]),
                panel(
                    "Held part of the quota",
                    PanelUnit.RATIO,
                    f"sum by (tenant, resource) (mlp_tenant_held{{{_OF}}}) / sum by (tenant, resource) (mlp_tenant_quota{{{_OF}}} > 0)",
                    "{{tenant}} {{resource}}",
                    help="A resource without a limit is left out.",
                ),
                cores_and_devices(
                    "Borrowed",
                    "mlp_tenant_borrowed",
                    "Cores and devices beyond the nominal quota. Empty if nothing is borrowed.",
                ),
                cores_and_devices(
                    "Lent",
                    "mlp_tenant_lent",
                    "Idle cores and devices that other teams hold. Empty if nothing is lent.",
                ),
                panel(
                    "Used part of the held amount",
                    PanelUnit.RATIO,
                    f"sum by (tenant, resource) (mlp_tenant_used{{{_OF}}}) / sum by (tenant, resource) (mlp_tenant_held{{{_OF}}} > 0)",
                    "{{tenant}} {{resource}}",
                    width=12,
                    help="Real use of jobs against the held amounts, which include notebook servers.",
                ),
                listing(
                    "Held beyond the limit",
                    PanelUnit.NUMBER,
                    f"sum by (tenant, resource) (mlp_tenant_over_limit{{{_OF}}})",
                    width=12,
                    help="Amounts in cores, devices and bytes. Empty if all teams are within their limits.",
                ),
            ),
        ),
        DashboardRow(
            "Jobs",
            (
                jobs_by_team("Waiting jobs", "waiting"),
                jobs_by_team("Running jobs", "running"),
                mean("mlp_tenant_admission_wait_seconds", "Mean wait until admission"),
                panel(
                    "Ended jobs by result, per hour",
                    PanelUnit.NUMBER,
                    f"sum by (result) (increase(mlp_jobs_ended_total{{{_OF}}}[1h]))",
                    "{{result}}",
                    stacked=True,
                ),
                by_team(
                    "Failed part of the jobs of an hour",
                    PanelUnit.RATIO,
                    f'sum by (tenant) (increase(mlp_jobs_ended_total{{{_OF},result="failed"}}[1h]))'
                    f' / sum by (tenant) (increase(mlp_jobs_ended_total{{{_OF},result=~"finished|failed"}}[1h]))',
                    help="Cancelled jobs do not count.",
                ),
                by_team(
                    "Submitted jobs, per hour",
                    PanelUnit.NUMBER,
                    f"sum by (tenant) (increase(mlp_jobs_submitted_total{{{_OF}}}[1h]))",
                ),
            ),
        ),
        DashboardRow(
            "Requests of members",
            (
                by_team(
                    "Requests",
                    PanelUnit.PER_SECOND,
                    f"sum by (tenant) (rate(mlp_tenant_request_duration_seconds_count{{{_OF}}}{RATE}))",
                ),
                mean("mlp_tenant_request_duration_seconds", "Mean duration of requests"),
                by_team(
                    "Failed requests",
                    PanelUnit.RATIO,
                    f"(sum by (tenant) (rate(mlp_tenant_request_errors_total{{{_OF}}}{RATE}))"
                    f" or 0 * sum by (tenant) (rate(mlp_tenant_request_duration_seconds_count{{{_OF}}}{RATE})))"
                    f" / sum by (tenant) (rate(mlp_tenant_request_duration_seconds_count{{{_OF}}}{RATE}))",
                    help="Requests that failed in the service, with a status of 5xx.",
                ),
            ),
        ),
    ),
    (_TENANT,),
)

APPS = Dashboard(
    "apps",
    "MLP Hub / Apps",
    "Requests to the apps of teams, as the gateway counts them.",
    (
        DashboardRow(
            "Requests",
            (
                by_team(
                    "Requests",
                    PanelUnit.PER_SECOND,
                    f"sum by (tenant) (rate(mlp_tenant_app_requests_total{{{_OF}}}{RATE}))",
                    width=12,
                ),
                by_team(
                    "Failed requests",
                    PanelUnit.RATIO,
                    f"sum by (tenant) (rate(mlp_tenant_app_errors_total{{{_OF}}}{RATE}))"
                    f" / sum by (tenant) (rate(mlp_tenant_app_requests_total{{{_OF}}}{RATE}))",
                    width=12,
                    help="Requests that were answered with a status of 5xx.",
                ),
            ),
        ),
        DashboardRow(
            "Latency",
            (
                latency("Median latency", 0.5),
                latency(
                    "p99 latency", 0.99, "The gateway counts in four buckets: 50 ms, 250 ms, 1 s and 10 s."
                ),
            ),
        ),
        DashboardRow(
            "Bandwidth",
            (
                app_bytes("Bytes to apps", "in"),
                app_bytes("Bytes from apps", "out"),
            ),
        ),
    ),
    (DashboardVariable("tenant", "Team", "mlp_tenant_app_requests_total"),),
)

STORAGE = Dashboard(
    "storage",
    "MLP Hub / Storage",
    "Storage of teams against their quota, of people's homes, and the free space below it.",
    (
        DashboardRow(
            "Teams",
            (
                by_team(
                    "Storage by team",
                    PanelUnit.BYTES,
                    f"sum by (tenant) (mlp_tenant_held{_STORAGE})",
                    stacked=True,
                    help="Homes, jobs' files, datasets, models and environments.",
                ),
                by_team(
                    "Used part of the storage quota",
                    PanelUnit.RATIO,
                    f"sum by (tenant) (mlp_tenant_held{_STORAGE}) / sum by (tenant) (mlp_tenant_quota{_STORAGE} > 0)",
                    help="A team without a limit is left out.",
                ),
                by_team(
                    "Growth within a day",
                    PanelUnit.BYTES,
                    f"sum by (tenant) (delta(mlp_tenant_held{_STORAGE}[1d]))",
                ),
            ),
        ),
        DashboardRow(
            "People's homes",
            (
                listing(
                    "Largest homes",
                    PanelUnit.BYTES,
                    "topk(20, max by (directory) (dirsize_total_size_bytes))",
                    help="Needs `MLP_METRICS_PEOPLE`.",
                ),
                panel(
                    "Homes by size",
                    PanelUnit.BYTES,
                    "topk(20, max by (directory) (dirsize_total_size_bytes))",
                    "{{directory}}",
                    help="Needs `MLP_METRICS_PEOPLE`.",
                ),
                panel(
                    "Used part of what a home can grow to",
                    PanelUnit.RATIO,
                    "topk(20, max by (directory) (dirsize_total_size_bytes)"
                    " / max by (directory) (dirsize_hard_limit_bytes > 0))",
                    "{{directory}}",
                    help="Needs `MLP_METRICS_PEOPLE`. A home whose team has no limit of storage is left out.",
                ),
            ),
        ),
        DashboardRow(
            "Space",
            (
                by_node(
                    "Available on the file system of the hub",
                    PanelUnit.BYTES,
                    'min by (node) (mlp_node_disk_bytes{state="available"})',
                    width=12,
                ),
                by_node(
                    "Available in a week, as it grew within a day",
                    PanelUnit.BYTES,
                    'clamp_min(min by (node) (predict_linear(mlp_node_disk_bytes{state="available"}[1d], 7 * 86400)), 0)',
                    width=12,
                ),
            ),
        ),
    ),
    (_TENANT,),
)

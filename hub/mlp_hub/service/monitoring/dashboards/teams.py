"""Dashboards of teams: their use and quota, their apps, and the storage of teams and people."""

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
_TENANT = DashboardVariable("tenant", "Team", "mlp_tenant_jobs")
_OF = 'tenant=~"$tenant"'
_STORAGE = f'{{{_OF},resource="storage"}}'


def held_and_used(resource: str) -> tuple[PanelQuery, ...]:
    """Return the queries of a resource of teams: quota, held, used."""
    where = f'{{{_OF},resource="{resource}"}}'
    return (
        _Q(f"sum by (tenant) (mlp_tenant_quota{where})", "{{tenant}} quota"),
        _Q(f"sum by (tenant) (mlp_tenant_held{where})", "{{tenant}} held"),
        _Q(f"sum by (tenant) (mlp_tenant_used{where})", "{{tenant}} used"),
    )


def mean(metric: str, title: str, legend: str = "{{tenant}}") -> DashboardPanel:
    """Return the panel of the mean of a histogram by team."""
    of = f"sum by (tenant) (rate({metric}_%s{{{_OF}}}{RATE}))"
    return _P(title, _U.SECONDS, (_Q(f"{of % 'sum'} / {of % 'count'}", legend),))


TENANT = Dashboard(
    "tenant",
    "MLP Hub / Team",
    "Quota, held and used amounts of teams, their jobs, and the requests of their members.",
    (
        DashboardRow(
            "Now",
            (
                _P(
                    "Jobs running",
                    _U.NUMBER,
                    (_Q(f'sum(mlp_tenant_jobs{{{_OF},state="running"}})'),),
                    _NUMBER,
                    4,
                ),
                _P(
                    "Jobs waiting",
                    _U.NUMBER,
                    (_Q(f'sum(mlp_tenant_jobs{{{_OF},state="waiting"}})'),),
                    _NUMBER,
                    4,
                ),
                _P(
                    "Cores held",
                    _U.NUMBER,
                    (_Q(f'sum(mlp_tenant_held{{{_OF},resource="cpu"}})'),),
                    _NUMBER,
                    4,
                ),
                _P(
                    "GPUs held",
                    _U.NUMBER,
                    (_Q(f'sum(mlp_tenant_held{{{_OF},resource="gpu"}})'),),
                    _NUMBER,
                    4,
                ),
                _P(
                    "Memory held",
                    _U.BYTES,
                    (_Q(f'sum(mlp_tenant_held{{{_OF},resource="memory"}})'),),
                    _NUMBER,
                    4,
                ),
                _P("Storage", _U.BYTES, (_Q(f"sum(mlp_tenant_held{_STORAGE})"),), _NUMBER, 4),
            ),
        ),
        DashboardRow(
            "Quota",
            (
                _P("Cores", _U.NUMBER, held_and_used("cpu")),
                _P("Memory", _U.BYTES, held_and_used("memory")),
                _P("GPUs", _U.NUMBER, held_and_used("gpu")[:2]),
                _P(
                    "Held part of the quota",
                    _U.RATIO,
                    (
                        _Q(
                            f"sum by (tenant, resource) (mlp_tenant_held{{{_OF}}}) / sum by (tenant, resource) (mlp_tenant_quota{{{_OF}}} > 0)",
                            "{{tenant}} {{resource}}",
                        ),
                    ),
                    help="A resource without a limit is left out.",
                ),
                _P(
                    "Borrowed",
                    _U.NUMBER,
                    (
                        _Q(
                            f'sum by (tenant, resource) (mlp_tenant_borrowed{{{_OF},resource=~"cpu|gpu.*"}})',
                            "{{tenant}} {{resource}}",
                        ),
                    ),
                    help="Cores and devices beyond the nominal quota. Empty if nothing is borrowed.",
                ),
                _P(
                    "Lent",
                    _U.NUMBER,
                    (
                        _Q(
                            f'sum by (tenant, resource) (mlp_tenant_lent{{{_OF},resource=~"cpu|gpu.*"}})',
                            "{{tenant}} {{resource}}",
                        ),
                    ),
                    help="Idle cores and devices that other teams hold. Empty if nothing is lent.",
                ),
                _P(
                    "Used part of the held amount",
                    _U.RATIO,
                    (
                        _Q(
                            f"sum by (tenant, resource) (mlp_tenant_used{{{_OF}}}) / sum by (tenant, resource) (mlp_tenant_held{{{_OF}}} > 0)",
                            "{{tenant}} {{resource}}",
                        ),
                    ),
                    width=12,
                    help="Real use of jobs against the held amounts, which include notebook servers.",
                ),
                _P(
                    "Held beyond the limit",
                    _U.NUMBER,
                    (_Q(f"sum by (tenant, resource) (mlp_tenant_over_limit{{{_OF}}})"),),
                    _TABLE,
                    width=12,
                    help="Amounts in cores, devices and bytes. Empty if all teams are within their limits.",
                ),
            ),
        ),
        DashboardRow(
            "Jobs",
            (
                _P(
                    "Waiting jobs",
                    _U.NUMBER,
                    (_Q(f'sum by (tenant) (mlp_tenant_jobs{{{_OF},state="waiting"}})', "{{tenant}}"),),
                    stacked=True,
                ),
                _P(
                    "Running jobs",
                    _U.NUMBER,
                    (_Q(f'sum by (tenant) (mlp_tenant_jobs{{{_OF},state="running"}})', "{{tenant}}"),),
                    stacked=True,
                ),
                mean("mlp_tenant_admission_wait_seconds", "Mean wait until admission"),
                _P(
                    "Ended jobs by result, per hour",
                    _U.NUMBER,
                    (
                        _Q(
                            f"sum by (result) (increase(mlp_jobs_ended_total{{{_OF}}}[1h]))",
                            "{{result}}",
                        ),
                    ),
                    stacked=True,
                ),
                _P(
                    "Failed part of the jobs of an hour",
                    _U.RATIO,
                    (
                        _Q(
                            f'sum by (tenant) (increase(mlp_jobs_ended_total{{{_OF},result="failed"}}[1h]))'
                            f' / sum by (tenant) (increase(mlp_jobs_ended_total{{{_OF},result=~"finished|failed"}}[1h]))',
                            "{{tenant}}",
                        ),
                    ),
                    help="Cancelled jobs do not count.",
                ),
                _P(
                    "Submitted jobs, per hour",
                    _U.NUMBER,
                    (_Q(f"sum by (tenant) (increase(mlp_jobs_submitted_total{{{_OF}}}[1h]))", "{{tenant}}"),),
                ),
            ),
        ),
        DashboardRow(
            "Requests of members",
            (
                _P(
                    "Requests",
                    _U.PER_SECOND,
                    (
                        _Q(
                            f"sum by (tenant) (rate(mlp_tenant_request_duration_seconds_count{{{_OF}}}{RATE}))",
                            "{{tenant}}",
                        ),
                    ),
                ),
                mean("mlp_tenant_request_duration_seconds", "Mean duration of requests"),
                _P(
                    "Failed requests",
                    _U.RATIO,
                    (
                        _Q(
                            f"(sum by (tenant) (rate(mlp_tenant_request_errors_total{{{_OF}}}{RATE}))"
                            f" or 0 * sum by (tenant) (rate(mlp_tenant_request_duration_seconds_count{{{_OF}}}{RATE})))"
                            f" / sum by (tenant) (rate(mlp_tenant_request_duration_seconds_count{{{_OF}}}{RATE}))",
                            "{{tenant}}",
                        ),
                    ),
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
                _P(
                    "Requests",
                    _U.PER_SECOND,
                    (
                        _Q(
                            f"sum by (tenant) (rate(mlp_tenant_app_requests_total{{{_OF}}}{RATE}))",
                            "{{tenant}}",
                        ),
                    ),
                    width=12,
                ),
                _P(
                    "Failed requests",
                    _U.RATIO,
                    (
                        _Q(
                            f"sum by (tenant) (rate(mlp_tenant_app_errors_total{{{_OF}}}{RATE}))"
                            f" / sum by (tenant) (rate(mlp_tenant_app_requests_total{{{_OF}}}{RATE}))",
                            "{{tenant}}",
                        ),
                    ),
                    width=12,
                    help="Requests that were answered with a status of 5xx.",
                ),
            ),
        ),
        DashboardRow(
            "Latency",
            (
                _P(
                    "Median latency",
                    _U.SECONDS,
                    (
                        _Q(
                            f"histogram_quantile(0.5, sum by (le, tenant) (rate(mlp_tenant_app_duration_seconds_bucket{{{_OF}}}{RATE})))",
                            "{{tenant}}",
                        ),
                    ),
                    width=12,
                ),
                _P(
                    "p99 latency",
                    _U.SECONDS,
                    (
                        _Q(
                            f"histogram_quantile(0.99, sum by (le, tenant) (rate(mlp_tenant_app_duration_seconds_bucket{{{_OF}}}{RATE})))",
                            "{{tenant}}",
                        ),
                    ),
                    width=12,
                    help="The gateway counts in four buckets: 50 ms, 250 ms, 1 s and 10 s.",
                ),
            ),
        ),
        DashboardRow(
            "Bandwidth",
            (
                _P(
                    "Bytes to apps",
                    _U.BYTES_PER_SECOND,
                    (
                        _Q(
                            f'sum by (tenant) (rate(mlp_tenant_app_bytes_total{{{_OF},direction="in"}}{RATE}))',
                            "{{tenant}}",
                        ),
                    ),
                    width=12,
                ),
                _P(
                    "Bytes from apps",
                    _U.BYTES_PER_SECOND,
                    (
                        _Q(
                            f'sum by (tenant) (rate(mlp_tenant_app_bytes_total{{{_OF},direction="out"}}{RATE}))',
                            "{{tenant}}",
                        ),
                    ),
                    width=12,
                ),
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
                _P(
                    "Storage by team",
                    _U.BYTES,
                    (_Q(f"sum by (tenant) (mlp_tenant_held{_STORAGE})", "{{tenant}}"),),
                    stacked=True,
                    help="Homes, jobs' files, datasets, models and environments.",
                ),
                _P(
                    "Used part of the storage quota",
                    _U.RATIO,
                    (
                        _Q(
                            f"sum by (tenant) (mlp_tenant_held{_STORAGE}) / sum by (tenant) (mlp_tenant_quota{_STORAGE} > 0)",
                            "{{tenant}}",
                        ),
                    ),
                    help="A team without a limit is left out.",
                ),
                _P(
                    "Growth within a day",
                    _U.BYTES,
                    (_Q(f"sum by (tenant) (delta(mlp_tenant_held{_STORAGE}[1d]))", "{{tenant}}"),),
                ),
            ),
        ),
        DashboardRow(
            "People's homes",
            (
                _P(
                    "Largest homes",
                    _U.BYTES,
                    (_Q("topk(20, max by (directory) (dirsize_total_size_bytes))"),),
                    _TABLE,
                    help="Needs `MLP_METRICS_PEOPLE`.",
                ),
                _P(
                    "Homes by size",
                    _U.BYTES,
                    (_Q("topk(20, max by (directory) (dirsize_total_size_bytes))", "{{directory}}"),),
                    help="Needs `MLP_METRICS_PEOPLE`.",
                ),
                _P(
                    "Used part of what a home can grow to",
                    _U.RATIO,
                    (
                        _Q(
                            "topk(20, max by (directory) (dirsize_total_size_bytes)"
                            " / max by (directory) (dirsize_hard_limit_bytes > 0))",
                            "{{directory}}",
                        ),
                    ),
                    help="Needs `MLP_METRICS_PEOPLE`. A home whose team has no limit of storage is left out.",
                ),
            ),
        ),
        DashboardRow(
            "Space",
            (
                _P(
                    "Available on the file system of the hub",
                    _U.BYTES,
                    (_Q('min by (node) (mlp_node_disk_bytes{state="available"})', "{{node}}"),),
                    width=12,
                ),
                _P(
                    "Available in a week, as it grew within a day",
                    _U.BYTES,
                    (
                        _Q(
                            'clamp_min(min by (node) (predict_linear(mlp_node_disk_bytes{state="available"}[1d], 7 * 86400)), 0)',
                            "{{node}}",
                        ),
                    ),
                    width=12,
                ),
            ),
        ),
    ),
    (_TENANT,),
)

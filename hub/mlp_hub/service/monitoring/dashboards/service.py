"""Dashboard of the service: requests, the database, delays and processes, and JupyterHub."""

from __future__ import annotations

from mlp_hub.service.monitoring.dashboards.model import (
    Dashboard,
    DashboardPanel,
    DashboardRow,
    PanelKind,
    PanelQuery,
    PanelUnit,
)
from mlp_hub.service.monitoring.dashboards.queries import RATE, quantiles

_P, _Q, _U = DashboardPanel, PanelQuery, PanelUnit
_NUMBER, _TABLE = PanelKind.NUMBER, PanelKind.TABLE

SERVICE = Dashboard(
    "service",
    "MLP Hub / Service",
    "Requests, the database, replicas, delays and processes of the service, and JupyterHub's own figures.",
    (
        DashboardRow(
            "Replicas",
            (
                _P(
                    "Versions",
                    _U.NUMBER,
                    (_Q("count by (instance, version, executor) (mlp_build_info)"),),
                    _TABLE,
                ),
                _P(
                    "Replicas by role",
                    _U.NUMBER,
                    (_Q("count by (replica_role) (mlp_replica_info)", "{{replica_role}}"),),
                ),
                _P("Replicas that lead", _U.NUMBER, (_Q("sum(mlp_lease_held)"),), _NUMBER, 4),
                _P(
                    "Takeovers, per hour",
                    _U.NUMBER,
                    (_Q('sum(increase(mlp_lease_transitions_total{event="acquired"}[1h]))'),),
                    _NUMBER,
                    4,
                ),
                _P(
                    "Problems",
                    _U.NUMBER,
                    (_Q("max by (component, reason) (mlp_problem)"),),
                    _TABLE,
                    width=24,
                    help="Parts of the platform that do not work now. Empty if all work.",
                ),
            ),
        ),
        DashboardRow(
            "Requests",
            (
                _P(
                    "Requests by status",
                    _U.PER_SECOND,
                    (_Q(f"sum by (code) (rate(mlp_http_requests_total{RATE}))", "{{code}}"),),
                    stacked=True,
                ),
                _P(
                    "Requests by group of routes",
                    _U.PER_SECOND,
                    (_Q(f"sum by (route_group) (rate(mlp_http_requests_total{RATE}))", "{{route_group}}"),),
                    stacked=True,
                ),
                _P("Duration of requests", _U.SECONDS, quantiles("mlp_http_request_duration_seconds")),
                _P(
                    "Failed requests",
                    _U.RATIO,
                    (
                        _Q(
                            f'(sum(rate(mlp_http_requests_total{{code="5xx"}}{RATE})) or vector(0)) / sum(rate(mlp_http_requests_total{RATE}))',
                            "5xx",
                        ),
                    ),
                ),
                _P("Open WebSockets", _U.NUMBER, (_Q("sum by (instance) (mlp_websockets)", "{{instance}}"),)),
                _P("Lag of the event loop", _U.SECONDS, quantiles("mlp_event_loop_lag_seconds")),
            ),
        ),
        DashboardRow(
            "Database and cluster",
            (
                _P("Duration of commits", _U.SECONDS, quantiles("mlp_store_commit_duration_seconds")),
                _P(
                    "Commits and changes",
                    _U.PER_SECOND,
                    (
                        _Q(
                            f"sum by (result) (rate(mlp_store_commit_duration_seconds_count{RATE}))",
                            "commits {{result}}",
                        ),
                        _Q(f"sum(rate(mlp_store_writes_total{RATE}))", "changes"),
                    ),
                ),
                _P(
                    "Requests to the cluster's API",
                    _U.PER_SECOND,
                    (_Q(f"sum by (request) (rate(mlp_cluster_requests_total{RATE}))", "{{request}}"),),
                    help="Empty if the hub runs jobs on its own machine.",
                ),
            ),
        ),
        DashboardRow(
            "Delays",
            (
                _P(
                    "Stored metric points",
                    _U.PER_SECOND,
                    (_Q(f"sum(rate(mlp_points_stored_total{RATE}))", "points"),),
                ),
                _P("Delay of metric points", _U.SECONDS, quantiles("mlp_points_delay_seconds")),
                _P(
                    "Messages that wait in Kafka",
                    _U.NUMBER,
                    (_Q("max(mlp_points_lag_messages)", "messages"),),
                    help="Empty if metric points do not go through Kafka.",
                ),
                _P(
                    "Notices that wait",
                    _U.NUMBER,
                    (_Q("sum(mlp_notices_behind)", "waiting"),),
                ),
                _P(
                    "Oldest notice that waits",
                    _U.SECONDS,
                    (_Q("max(mlp_notices_oldest_age_seconds)", "age"),),
                ),
                _P(
                    "Sent notices by channel and result, per hour",
                    _U.NUMBER,
                    (
                        _Q(
                            "sum by (channel, result) (increase(mlp_notices_sent_total[1h]))",
                            "{{channel}} {{result}}",
                        ),
                    ),
                    help="Empty if nobody has a channel.",
                ),
                _P(
                    "Entries of the audit log that are not shipped",
                    _U.NUMBER,
                    (_Q("max by (receiver) (mlp_audit_unshipped_links)", "{{receiver}}"),),
                    help="Empty if the audit log is not shipped.",
                ),
                _P(
                    "Oldest entry of the audit log that is not shipped",
                    _U.SECONDS,
                    (_Q("max by (receiver) (mlp_audit_unshipped_age_seconds)", "{{receiver}}"),),
                    help="Empty if the audit log is not shipped.",
                ),
                _P(
                    "Exported traces by result, per hour",
                    _U.NUMBER,
                    (_Q("sum by (result) (increase(mlp_traces_runs_total[1h]))", "{{result}}"),),
                    help="Empty if no collector of traces is set.",
                ),
                _P(
                    "Exported metric points by exporter and result, per hour",
                    _U.NUMBER,
                    (
                        _Q(
                            "sum by (exporter, result) (increase(mlp_points_exported_total[1h]))",
                            "{{exporter}} {{result}}",
                        ),
                    ),
                    help="Empty if metric points are not exported.",
                ),
                _P(
                    "Metric points that wait for export",
                    _U.NUMBER,
                    (_Q("max by (exporter) (mlp_points_export_behind)", "{{exporter}}"),),
                    help="Empty if metric points are not exported.",
                ),
                _P(
                    "Failed requests of exporters, per hour",
                    _U.NUMBER,
                    (
                        _Q(
                            "sum by (exporter) (increase(mlp_points_export_failures_total[1h]))",
                            "{{exporter}}",
                        ),
                    ),
                    help="Empty if metric points are not exported.",
                ),
            ),
        ),
        DashboardRow(
            "Certificate and backups",
            (
                _P(
                    "Time until the certificate ends",
                    _U.SECONDS,
                    (_Q("min(mlp_certificate_expiry_timestamp_seconds) - time()"),),
                    _NUMBER,
                    help="Of the public port. Empty if the hub does not speak TLS itself.",
                ),
                _P(
                    "Age of the last backup",
                    _U.SECONDS,
                    (_Q("time() - max(mlp_backup_last_timestamp_seconds)"),),
                    _NUMBER,
                    help="Of `mlp-hub backup`. Empty before the first.",
                ),
                _P(
                    "Size of the last backup",
                    _U.BYTES,
                    (_Q("max(mlp_backup_last_size_bytes)", "size"),),
                ),
            ),
        ),
        DashboardRow(
            "Process of the service",
            (
                _P(
                    "Cores",
                    _U.NUMBER,
                    (
                        _Q(
                            f"sum by (instance) (rate(process_cpu_seconds_total{RATE}))",
                            "{{instance}}",
                        ),
                    ),
                ),
                _P(
                    "Memory",
                    _U.BYTES,
                    (_Q("sum by (instance) (process_resident_memory_bytes)", "{{instance}}"),),
                ),
                _P(
                    "Open descriptors",
                    _U.RATIO,
                    (
                        _Q(
                            "max by (instance) (process_open_fds) / max by (instance) (process_max_fds)",
                            "{{instance}}",
                        ),
                    ),
                ),
            ),
        ),
        DashboardRow(
            "JupyterHub",
            (
                _P(
                    "Notebook servers",
                    _U.NUMBER,
                    (_Q("sum(jupyterhub_running_servers)", "running"),),
                ),
                _P(
                    "Active people",
                    _U.NUMBER,
                    (_Q("sum by (period) (jupyterhub_active_users)", "{{period}}"),),
                ),
                _P(
                    "Starts of notebook servers, per hour",
                    _U.NUMBER,
                    (
                        _Q(
                            "sum by (status) (increase(jupyterhub_server_spawn_duration_seconds_count[1h]))",
                            "{{status}}",
                        ),
                    ),
                ),
                _P(
                    "Duration of successful starts",
                    _U.SECONDS,
                    quantiles("jupyterhub_server_spawn_duration_seconds", where='{status="success"}'),
                    width=12,
                ),
                _P(
                    "Requests by status",
                    _U.PER_SECOND,
                    (
                        _Q(
                            f"sum by (code) (rate(jupyterhub_request_duration_seconds_count{RATE}))",
                            "{{code}}",
                        ),
                    ),
                    width=12,
                ),
            ),
        ),
    ),
)

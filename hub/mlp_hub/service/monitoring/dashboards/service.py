"""Dashboard of the service: requests, the database, delays and processes, and JupyterHub."""

from __future__ import annotations

from mlp_hub.service.monitoring.dashboards.model import (
    Dashboard,
    DashboardPanel,
    DashboardRow,
    PanelQuery,
    PanelUnit,
)
from mlp_hub.service.monitoring.dashboards.queries import RATE, listing, number, panel, quantiles

SERVICE = Dashboard(
    "service",
    "MLP Hub / Service",
    "Requests, the database, replicas, delays and processes of the service, and JupyterHub's own figures.",
    (
        DashboardRow(
            "Replicas",
            (
                listing(
                    "Versions", PanelUnit.NUMBER, "count by (instance, version, executor) (mlp_build_info)"
                ),
                panel(
                    "Replicas by role",
                    PanelUnit.NUMBER,
                    "count by (replica_role) (mlp_replica_info)",
                    "{{replica_role}}",
                ),
                number("Replicas that lead", PanelUnit.NUMBER, "sum(mlp_lease_held)", width=4),
                number(
                    "Takeovers, per hour",
                    PanelUnit.NUMBER,
                    'sum(increase(mlp_lease_transitions_total{event="acquired"}[1h]))',
                    width=4,
                ),
                number(
                    "Takeovers within 15 minutes",
                    PanelUnit.NUMBER,
                    "max(mlp_lease_recent_takeovers)",
                    width=4,
                    help="Of any replica; restarts do not forget them. More than 3 fire MLPLeaseFlapping.",
                ),
                listing(
                    "Problems",
                    PanelUnit.NUMBER,
                    "max by (component, reason) (mlp_problem)",
                    width=24,
                    help="Parts of the platform that do not work now. Empty if all work.",
                ),
            ),
        ),
        DashboardRow(
            "Requests",
            (
                panel(
                    "Requests by status",
                    PanelUnit.PER_SECOND,
                    f"sum by (code) (rate(mlp_http_requests_total{RATE}))",
                    "{{code}}",
                    stacked=True,
                ),
                panel(
                    "Requests by group of routes",
                    PanelUnit.PER_SECOND,
                    f"sum by (route_group) (rate(mlp_http_requests_total{RATE}))",
                    "{{route_group}}",
                    stacked=True,
                ),
                DashboardPanel(
                    "Duration of requests", PanelUnit.SECONDS, quantiles("mlp_http_request_duration_seconds")
                ),
                panel(
                    "Failed requests",
                    PanelUnit.RATIO,
                    f'(sum(rate(mlp_http_requests_total{{code="5xx"}}{RATE})) or vector(0)) / sum(rate(mlp_http_requests_total{RATE}))',
                    "5xx",
                ),
                panel(
                    "Open WebSockets", PanelUnit.NUMBER, "sum by (instance) (mlp_websockets)", "{{instance}}"
                ),
                DashboardPanel(
                    "Lag of the event loop", PanelUnit.SECONDS, quantiles("mlp_event_loop_lag_seconds")
                ),
            ),
        ),
        DashboardRow(
            "Database and cluster",
            (
                DashboardPanel(
                    "Duration of commits", PanelUnit.SECONDS, quantiles("mlp_store_commit_duration_seconds")
                ),
                DashboardPanel(
                    "Commits and changes",
                    PanelUnit.PER_SECOND,
                    (
                        PanelQuery(
                            f"sum by (result) (rate(mlp_store_commit_duration_seconds_count{RATE}))",
                            "commits {{result}}",
                        ),
                        PanelQuery(f"sum(rate(mlp_store_writes_total{RATE}))", "changes"),
                    ),
                ),
                panel(
                    "Requests to the cluster's API",
                    PanelUnit.PER_SECOND,
                    f"sum by (request) (rate(mlp_cluster_requests_total{RATE}))",
                    "{{request}}",
                    help="Empty if the hub runs jobs on its own machine.",
                ),
            ),
        ),
        DashboardRow(
            "Delays",
            (
                panel(
                    "Stored metric points",
                    PanelUnit.PER_SECOND,
                    f"sum(rate(mlp_points_stored_total{RATE}))",
                    "points",
                ),
                DashboardPanel(
                    "Delay of metric points", PanelUnit.SECONDS, quantiles("mlp_points_delay_seconds")
                ),
                panel(
                    "Messages that wait in Kafka",
                    PanelUnit.NUMBER,
                    "max(mlp_points_lag_messages)",
                    "messages",
                    help="Empty if metric points do not go through Kafka.",
                ),
                panel("Notices that wait", PanelUnit.NUMBER, "sum(mlp_notices_behind)", "waiting"),
                panel(
                    "Oldest notice that waits",
                    PanelUnit.SECONDS,
                    "max(mlp_notices_oldest_age_seconds)",
                    "age",
                ),
                panel(
                    "Sent notices by channel and result, per hour",
                    PanelUnit.NUMBER,
                    "sum by (channel, result) (increase(mlp_notices_sent_total[1h]))",
                    "{{channel}} {{result}}",
                    help="Empty if nobody has a channel.",
                ),
                panel(
                    "Entries of the audit log that are not shipped",
                    PanelUnit.NUMBER,
                    "max by (receiver) (mlp_audit_unshipped_links)",
                    "{{receiver}}",
                    help="Empty if the audit log is not shipped.",
                ),
                panel(
                    "Oldest entry of the audit log that is not shipped",
                    PanelUnit.SECONDS,
                    "max by (receiver) (mlp_audit_unshipped_age_seconds)",
                    "{{receiver}}",
                    help="Empty if the audit log is not shipped.",
                ),
                panel(
                    "Exported traces by result, per hour",
                    PanelUnit.NUMBER,
                    "sum by (result) (increase(mlp_traces_runs_total[1h]))",
                    "{{result}}",
                    help="Empty if no collector of traces is set.",
                ),
                panel(
                    "Exported metric points by exporter and result, per hour",
                    PanelUnit.NUMBER,
                    "sum by (exporter, result) (increase(mlp_points_exported_total[1h]))",
                    "{{exporter}} {{result}}",
                    help="Empty if metric points are not exported.",
                ),
                panel(
                    "Metric points that wait for export",
                    PanelUnit.NUMBER,
                    "max by (exporter) (mlp_points_export_behind)",
                    "{{exporter}}",
                    help="Empty if metric points are not exported.",
                ),
                panel(
                    "Failed requests of exporters, per hour",
                    PanelUnit.NUMBER,
                    "sum by (exporter) (increase(mlp_points_export_failures_total[1h]))",
                    "{{exporter}}",
                    help="Empty if metric points are not exported.",
                ),
            ),
        ),
        DashboardRow(
            "Certificate and backups",
            (
                number(
                    "Time until the certificate ends",
                    PanelUnit.SECONDS,
                    "min(mlp_certificate_expiry_timestamp_seconds) - time()",
                    help="Of the public port. Empty if the hub does not speak TLS itself.",
                ),
                number(
                    "Age of the last backup",
                    PanelUnit.SECONDS,
                    "time() - max(mlp_backup_last_timestamp_seconds)",
                    help="Of `mlp-hub backup`. Empty before the first.",
                ),
                panel("Size of the last backup", PanelUnit.BYTES, "max(mlp_backup_last_size_bytes)", "size"),
            ),
        ),
        DashboardRow(
            "Process of the service",
            (
                panel(
                    "Cores",
                    PanelUnit.NUMBER,
                    f"sum by (instance) (rate(process_cpu_seconds_total{RATE}))",
                    "{{instance}}",
                ),
                panel(
                    "Memory",
                    PanelUnit.BYTES,
                    "sum by (instance) (process_resident_memory_bytes)",
                    "{{instance}}",
                ),
                panel(
                    "Open descriptors",
                    PanelUnit.RATIO,
                    "max by (instance) (process_open_fds) / max by (instance) (process_max_fds)",
                    "{{instance}}",
                ),
            ),
        ),
        DashboardRow(
            "JupyterHub",
            (
                panel("Notebook servers", PanelUnit.NUMBER, "sum(jupyterhub_running_servers)", "running"),
                panel(
                    "Active people",
                    PanelUnit.NUMBER,
                    "sum by (period) (jupyterhub_active_users)",
                    "{{period}}",
                ),
                panel(
                    "Starts of notebook servers, per hour",
                    PanelUnit.NUMBER,
                    "sum by (status) (increase(jupyterhub_server_spawn_duration_seconds_count[1h]))",
                    "{{status}}",
                ),
                DashboardPanel(
                    "Duration of successful starts",
                    PanelUnit.SECONDS,
                    quantiles("jupyterhub_server_spawn_duration_seconds", where='{status="success"}'),
                    width=12,
                ),
                panel(
                    "Requests by status",
                    PanelUnit.PER_SECOND,
                    f"sum by (code) (rate(jupyterhub_request_duration_seconds_count{RATE}))",
                    "{{code}}",
                    width=12,
                ),
            ),
        ),
    ),
)

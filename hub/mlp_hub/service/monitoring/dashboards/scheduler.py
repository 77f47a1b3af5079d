"""Dashboard of the scheduler: the queue, waits, decisions and the cycle."""

from __future__ import annotations

from mlp_hub.service.monitoring.dashboards.model import (
    Dashboard,
    DashboardPanel,
    DashboardRow,
    PanelQuery,
    PanelUnit,
)
from mlp_hub.service.monitoring.dashboards.queries import RATE, by_team, panel, quantiles

SCHEDULER = Dashboard(
    "scheduler",
    "MLP Hub / Scheduler",
    "The queue, waits, admissions, and the scheduling cycle.",
    (
        DashboardRow(
            "Queue",
            (
                panel(
                    "Waiting jobs by reason",
                    PanelUnit.NUMBER,
                    "sum by (reason) (mlp_queue_jobs)",
                    "{{reason}}",
                    stacked=True,
                ),
                panel(
                    "Longest wait by reason",
                    PanelUnit.SECONDS,
                    "max by (reason) (mlp_queue_oldest_age_seconds)",
                    "{{reason}}",
                ),
                panel(
                    "Other waiting requests",
                    PanelUnit.NUMBER,
                    "sum by (kind) (mlp_queue_requests)",
                    "{{kind}}",
                    help="Requests of workloads other than jobs, such as notebook servers.",
                ),
            ),
        ),
        DashboardRow(
            "Waits",
            (
                panel(
                    "Wait until admission, p90 by priority",
                    PanelUnit.SECONDS,
                    "histogram_quantile(0.9, sum by (le, priority) (increase(mlp_admission_wait_seconds_bucket[1h])))",
                    "{{priority}}",
                    help="Of jobs that were admitted within an hour.",
                ),
                by_team(
                    "Mean wait until admission by team",
                    PanelUnit.SECONDS,
                    "sum by (tenant) (increase(mlp_tenant_admission_wait_seconds_sum[1h]))"
                    " / sum by (tenant) (increase(mlp_tenant_admission_wait_seconds_count[1h]))",
                ),
                DashboardPanel(
                    "Start after admission",
                    PanelUnit.SECONDS,
                    quantiles("mlp_job_start_seconds"),
                    help="Time until all ranks run.",
                ),
            ),
        ),
        DashboardRow(
            "Decisions",
            (
                DashboardPanel(
                    "Submitted and admitted jobs",
                    PanelUnit.PER_SECOND,
                    (
                        PanelQuery(f"sum(rate(mlp_jobs_submitted_total{RATE}))", "submitted"),
                        PanelQuery(f"sum(rate(mlp_admissions_total{RATE}))", "admitted"),
                    ),
                ),
                panel(
                    "Evictions by cause, per hour",
                    PanelUnit.NUMBER,
                    "sum by (cause) (increase(mlp_evictions_total[1h])) > 0",
                    "{{cause}}",
                    help="Attempts that ended without the end of their job.",
                ),
                panel(
                    "Preemptions by reason, per hour",
                    PanelUnit.NUMBER,
                    "sum by (reason) (increase(mlp_preemptions_total[1h]))",
                    "{{reason}}",
                    help="Empty if no job was stopped for another one.",
                ),
                by_team(
                    "Weighted share by team",
                    PanelUnit.RATIO,
                    "sum by (tenant) (mlp_tenant_weighted_share)",
                    width=12,
                    help="Dominant share of the cluster, divided by the team's weight. The smallest is served first.",
                ),
                panel(
                    "Borrowed quota by team",
                    PanelUnit.NUMBER,
                    'sum by (tenant, resource) (mlp_tenant_borrowed{resource=~"cpu|gpu.*"})',
                    "{{tenant}} {{resource}}",
                    width=12,
                    help="Cores and devices beyond the nominal quota. Empty if nothing is borrowed.",
                ),
            ),
        ),
        DashboardRow(
            "Cycle",
            (
                panel(
                    "Cycles by outcome",
                    PanelUnit.PER_SECOND,
                    f"sum by (outcome) (rate(mlp_scheduler_cycle_duration_seconds_count{RATE}))",
                    "{{outcome}}",
                ),
                DashboardPanel(
                    "Duration of cycles", PanelUnit.SECONDS, quantiles("mlp_scheduler_cycle_duration_seconds")
                ),
                panel(
                    "Time since the last cycle",
                    PanelUnit.SECONDS,
                    "time() - max(mlp_scheduler_last_cycle_timestamp_seconds)",
                    "age",
                ),
            ),
        ),
        DashboardRow(
            "Work queue",
            (
                panel(
                    "Objects in the work queue",
                    PanelUnit.NUMBER,
                    "sum by (state) (mlp_workqueue_depth)",
                    "{{state}}",
                    width=12,
                ),
                panel(
                    "Retried turns of workers",
                    PanelUnit.PER_SECOND,
                    f"sum(rate(mlp_workqueue_failures_total{RATE}))",
                    "failures",
                    width=12,
                ),
            ),
        ),
    ),
)

"""Dashboard of the scheduler: the queue, waits, decisions and the cycle."""

from __future__ import annotations

from mlp_hub.service.monitoring.dashboards.model import (
    Dashboard,
    DashboardPanel,
    DashboardRow,
    PanelQuery,
    PanelUnit,
)
from mlp_hub.service.monitoring.dashboards.queries import RATE, quantiles

_P, _Q, _U = DashboardPanel, PanelQuery, PanelUnit

SCHEDULER = Dashboard(
    "scheduler",
    "MLP Hub / Scheduler",
    "The queue, waits, admissions, and the scheduling cycle.",
    (
        DashboardRow(
            "Queue",
            (
                _P(
                    "Waiting jobs by reason",
                    _U.NUMBER,
                    (_Q("sum by (reason) (mlp_queue_jobs)", "{{reason}}"),),
                    stacked=True,
                ),
                _P(
                    "Longest wait by reason",
                    _U.SECONDS,
                    (_Q("max by (reason) (mlp_queue_oldest_age_seconds)", "{{reason}}"),),
                ),
                _P(
                    "Other waiting requests",
                    _U.NUMBER,
                    (_Q("sum by (kind) (mlp_queue_requests)", "{{kind}}"),),
                    help="Requests of workloads other than jobs, such as notebook servers.",
                ),
            ),
        ),
        DashboardRow(
            "Waits",
            (
                _P(
                    "Wait until admission, p90 by priority",
                    _U.SECONDS,
                    (
                        _Q(
                            "histogram_quantile(0.9, sum by (le, priority) (increase(mlp_admission_wait_seconds_bucket[1h])))",
                            "{{priority}}",
                        ),
                    ),
                    help="Of jobs that were admitted within an hour.",
                ),
                _P(
                    "Mean wait until admission by team",
                    _U.SECONDS,
                    (
                        _Q(
                            "sum by (tenant) (increase(mlp_tenant_admission_wait_seconds_sum[1h]))"
                            " / sum by (tenant) (increase(mlp_tenant_admission_wait_seconds_count[1h]))",
                            "{{tenant}}",
                        ),
                    ),
                ),
                _P(
                    "Start after admission",
                    _U.SECONDS,
                    quantiles("mlp_job_start_seconds"),
                    help="Time until all ranks run.",
                ),
            ),
        ),
        DashboardRow(
            "Decisions",
            (
                _P(
                    "Submitted and admitted jobs",
                    _U.PER_SECOND,
                    (
                        _Q(f"sum(rate(mlp_jobs_submitted_total{RATE}))", "submitted"),
                        _Q(f"sum(rate(mlp_admissions_total{RATE}))", "admitted"),
                    ),
                ),
                _P(
                    "Evictions by cause, per hour",
                    _U.NUMBER,
                    (_Q("sum by (cause) (increase(mlp_evictions_total[1h])) > 0", "{{cause}}"),),
                    help="Attempts that ended without the end of their job.",
                ),
                _P(
                    "Preemptions by reason, per hour",
                    _U.NUMBER,
                    (_Q("sum by (reason) (increase(mlp_preemptions_total[1h]))", "{{reason}}"),),
                    help="Empty if no job was stopped for another one.",
                ),
                _P(
                    "Weighted share by team",
                    _U.RATIO,
                    (_Q("sum by (tenant) (mlp_tenant_weighted_share)", "{{tenant}}"),),
                    width=12,
                    help="Dominant share of the cluster, divided by the team's weight. The smallest is served first.",
                ),
                _P(
                    "Borrowed quota by team",
                    _U.NUMBER,
                    (
                        _Q(
                            'sum by (tenant, resource) (mlp_tenant_borrowed{resource=~"cpu|gpu.*"})',
                            "{{tenant}} {{resource}}",
                        ),
                    ),
                    width=12,
                    help="Cores and devices beyond the nominal quota. Empty if nothing is borrowed.",
                ),
            ),
        ),
        DashboardRow(
            "Cycle",
            (
                _P(
                    "Cycles by outcome",
                    _U.PER_SECOND,
                    (
                        _Q(
                            f"sum by (outcome) (rate(mlp_scheduler_cycle_duration_seconds_count{RATE}))",
                            "{{outcome}}",
                        ),
                    ),
                ),
                _P("Duration of cycles", _U.SECONDS, quantiles("mlp_scheduler_cycle_duration_seconds")),
                _P(
                    "Time since the last cycle",
                    _U.SECONDS,
                    (_Q("time() - max(mlp_scheduler_last_cycle_timestamp_seconds)", "age"),),
                ),
            ),
        ),
        DashboardRow(
            "Work queue",
            (
                _P(
                    "Objects in the work queue",
                    _U.NUMBER,
                    (_Q("sum by (state) (mlp_workqueue_depth)", "{{state}}"),),
                    width=12,
                ),
                _P(
                    "Retried turns of workers",
                    _U.PER_SECOND,
                    (_Q(f"sum(rate(mlp_workqueue_failures_total{RATE}))", "failures"),),
                    width=12,
                ),
            ),
        ),
    ),
)

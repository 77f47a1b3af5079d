"""The table of alert rules, and the files of Prometheus and Alertmanager that are written from it.

A rule compares one value with one threshold, so that other evaluators can use the table too. `value` is the query of
the value by labels; the alert fires once `value op threshold` has held for `for_s` seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MINUTE_S = 60
"""Given: seconds of a minute."""
ABSENT = "MLPHubAbsent"
"""Name of the alert that inhibits all others."""
GROUP = "mlp-hub"
PAGE = "reference/alerts"
"""Page of the documentation with a section for each alert."""


@dataclass(frozen=True, slots=True)
class AlertRule:
    """Row of the table. `meaning` and `remedy` are the section of its runbook; `guard` is a further condition of the query.

    `description` has `{value}` where the value stands, and `{label}` of labels that the query keeps.
    """

    name: str
    severity: str
    value: str
    op: str
    threshold: float
    for_s: int
    summary: str
    description: str
    meaning: str
    remedy: str
    unit: str = ""
    guard: str = ""

    @property
    def expression(self) -> str:
        """Return the whole query."""
        compared = f"{self.value} {self.op} {self.threshold:.15g}"
        return f"({compared}) and {self.guard}" if self.guard else compared


_IDLE = 'sum by (node) (rate(mlp_node_cpu_seconds_total{mode=~"idle|iowait"}[5m]))'
_ALL = "sum by (node) (rate(mlp_node_cpu_seconds_total[5m]))"
_CORES = 'sum by (node) (mlp_node_cpu_used_cores) / sum by (node) (mlp_node_capacity{resource="cpu"})'
_ENDED = 'mlp_jobs_ended_total{result=~"finished|failed"}[1h]'
_FAILED = 'mlp_jobs_ended_total{result="failed"}[1h]'

RULES: tuple[AlertRule, ...] = (
    AlertRule(
        "MLPNodeCpuHigh",
        "warning",
        f"(1 - {_IDLE} / {_ALL} or {_CORES})",
        ">",
        0.8,
        10 * MINUTE_S,
        "The processors of node {node} are busy",
        "{value} of the processor time of node {node} is used; the threshold is 80%.",
        "More than 80% of the processor time of a node was used for ten minutes. Jobs that compute do this; it is a fault only if "
        "notebooks and pages become slow.",
        'Compare `mlp_tenant_used{resource="cpu"}` with `mlp_tenant_held{resource="cpu"}` to find the team. On one machine, lower '
        "`MLP_NODE_CPU_OVERCOMMIT`, or add nodes.",
        "%",
    ),
    AlertRule(
        "MLPNodeGpuHigh",
        "info",
        "avg by (node) (mlp_node_gpu_utilization_ratio)",
        ">",
        0.9,
        10 * MINUTE_S,
        "The GPUs of node {node} are busy",
        "The GPUs of node {node} compute {value} of the time; the threshold is 90%.",
        "The GPUs of a node computed for more than 90% of ten minutes on average. This is good use, and a sign that more work would wait.",
        "Look at the queue: if jobs wait for GPUs for hours, plan more of them, or lend idle quota between teams.",
        "%",
    ),
    AlertRule(
        "MLPNodeMemoryHigh",
        "critical",
        '1 - mlp_node_memory_bytes{state="available"} / ignoring (state) mlp_node_memory_bytes{state="total"}',
        ">",
        0.95,
        5 * MINUTE_S,
        "Node {node} has little memory left",
        "{value} of the memory of node {node} is used; the threshold is 95%.",
        "Less than 5% of the memory of a node can still be given to programs. The kernel may kill processes soon.",
        "`make status` shows the memory of the hub's processes. Suspend the largest job, or raise `MLP_NODE_RAM_RESERVE`, so that less "
        "memory is given to jobs.",
        "%",
    ),
    AlertRule(
        "MLPJobFailuresHigh",
        "warning",
        f"sum(increase({_FAILED})) / sum(increase({_ENDED}))",
        ">",
        0.1,
        2 * MINUTE_S,
        "Many jobs fail",
        "{value} of the jobs that ended within an hour failed; the threshold is 10%.",
        "More than 10% of the jobs that ended within the last hour failed. Cancelled jobs do not count.",
        "`mlp_jobs_failed_total` has the causes. `node-lost` and `start-failed` are faults of the platform; `out-of-memory` asks for "
        "more memory per rank; `program-error` is for the owners. `MLPTenantJobFailuresHigh` names the team, if it is one.",
        "%",
    ),
    AlertRule(
        "MLPTenantOverQuota",
        "warning",
        "mlp_tenant_over_limit",
        ">",
        0,
        5 * MINUTE_S,
        "Team {tenant} holds more than its quota",
        "Team {tenant} holds {value} of {resource} more than its limit, in cores, devices or bytes.",
        "A team holds more than its quota and what it may borrow. This happens after its quota was lowered, or when files grew.",
        "Nothing of the team starts until it holds less. Raise the quota, or ask its members to end jobs or delete files: the page of the "
        "team lists the holders.",
    ),
    AlertRule(
        "MLPTenantJobFailuresHigh",
        "warning",
        f"sum by (tenant) (increase({_FAILED})) / sum by (tenant) (increase({_ENDED}))",
        ">",
        0.1,
        2 * MINUTE_S,
        "Many jobs of team {tenant} fail",
        "{value} of the jobs of team {tenant} that ended within an hour failed; the threshold is 10%.",
        "More than 10% of a team's jobs that ended within the last hour failed, and at least five ended.",
        "The runs of the team show the causes: search for `phase = failed`. A shared environment or dataset is the usual reason if several "
        "members are affected.",
        "%",
        f"on (tenant) (sum by (tenant) (increase({_ENDED})) >= 4.5)",
    ),
    AlertRule(
        ABSENT,
        "critical",
        "absent(mlp_build_info)",
        ">",
        0,
        2 * MINUTE_S,
        "The hub cannot be scraped",
        "Prometheus has no metrics of the hub.",
        "Prometheus gets no answer: the service is down, its address is wrong, or the token is not valid any more.",
        "Open the target in Prometheus: 401 or 403 mean the token, a refused connection means the service. `make status` and `make logs` "
        "on the hub's machine show the rest. All other alerts are inhibited meanwhile.",
    ),
    AlertRule(
        "MLPNoLeader",
        "critical",
        "sum(mlp_lease_held)",
        "<",
        1,
        2 * MINUTE_S,
        "No service leads",
        "{value} replicas hold the lease of the scheduler; no job starts.",
        "No replica of the service holds the lease, so nothing is scheduled. Running jobs continue.",
        "Look at the database: each replica needs it to take the lease. [Two services](../how-to/replicas.md) describes the takeover.",
    ),
    AlertRule(
        "MLPLeaseFlapping",
        "warning",
        'sum(increase(mlp_lease_transitions_total{event="acquired"}[15m]))',
        ">",
        3,
        MINUTE_S,
        "Services take the lease from each other",
        "The lease was taken {value} times within 15 minutes.",
        "Replicas lose the lease and take it again and again: each takeover delays requests for seconds.",
        "The usual causes are a slow or unreachable database, and a machine without processor time. Compare "
        "`mlp_store_commit_duration_seconds` and `mlp_event_loop_lag_seconds`.",
    ),
    AlertRule(
        "MLPNoCycle",
        "critical",
        "time() - max(mlp_scheduler_last_cycle_timestamp_seconds)",
        ">",
        300,
        MINUTE_S,
        "The scheduler does not run",
        "The last successful scheduling cycle ended {value} ago.",
        "A cycle runs at least each 30 seconds. None has succeeded for five minutes, so no job starts.",
        '`mlp_scheduler_cycle_duration_seconds_count{outcome="failed"}` counts failed cycles, and the log of the service has their errors.',
        "s",
    ),
    AlertRule(
        "MLPQueueStuck",
        "warning",
        'max by (reason) (mlp_queue_oldest_age_seconds{reason!~"Gated|Suspended"})',
        ">",
        86_400,
        10 * MINUTE_S,
        "A job waits for more than a day",
        "The oldest job that waits for {reason} is in the queue for {value}.",
        "A job has waited for more than a day for a reason that its user did not choose.",
        "The page *Queue* shows why it waits and when it is expected to start. The [reasons](reasons.md) have the remedies.",
        "s",
    ),
    AlertRule(
        "MLPGangNeverFits",
        "warning",
        'sum by (reason) (mlp_queue_jobs{reason=~"NoMatchingFlavor|ExceedsMaxQuota|TopologyPlacementFailed"})',
        ">",
        0,
        30 * MINUTE_S,
        "Jobs wait for room that does not exist",
        "{value} jobs wait because of {reason}.",
        "Jobs ask for a device, a topology or an amount that no nodes have at present. They wait until nodes return.",
        "Compare the request with the page *Nodes*. If a node is lost or drained, return it; otherwise tell the owner to ask for less.",
    ),
    AlertRule(
        "MLPPlatformProblem",
        "critical",
        "max by (component, reason) (mlp_problem)",
        ">",
        0,
        2 * MINUTE_S,
        "A part of the platform does not work: {component}",
        "The service reports the problem {reason} of {component}.",
        "The service reports a problem, as `/health` does.",
        "The table of [what does not work](../how-to/operate.md) has each reason.",
    ),
    AlertRule(
        "MLPNodeLost",
        "critical",
        "mlp_node_ready",
        "<",
        1,
        5 * MINUTE_S,
        "Node {node} does not answer",
        "Node {node} has not been ready for five minutes.",
        "A node is not ready. Its jobs went back to the queue without using a retry.",
        "Look at the node itself. If it will be away for long, drain it: `mlp-hub node drain NAME`.",
    ),
    AlertRule(
        "MLPGpuErrors",
        "critical",
        "max by (Hostname, hostname, gpu) (DCGM_FI_DEV_XID_ERRORS)",
        ">",
        0,
        MINUTE_S,
        "GPU {gpu} reports an error",
        "GPU {gpu} of {hostname}{Hostname} reports Xid {value}.",
        "NVIDIA's driver reports an Xid error. It needs the DCGM exporter; without it, this rule never fires.",
        "Look the number up in NVIDIA's list of Xid errors. Drain the node if it is 48, 63, 64, 79, 94 or 95.",
    ),
    AlertRule(
        "MLPGpuIdle",
        "info",
        "avg by (node) (avg_over_time(mlp_node_gpu_utilization_ratio[1h]))",
        "<",
        0.05,
        30 * MINUTE_S,
        "GPUs of node {node} are held and idle",
        "The GPUs of node {node} compute {value} of the time, and workloads hold some of them.",
        "Workloads hold GPUs of a node that computed for less than 5% of an hour.",
        "Ask the holders, whom the page *Nodes* names, whether they still need them.",
        "%",
        'on (node) (mlp_node_held{resource="gpu"} > 0)',
    ),
    AlertRule(
        "MLPDiskFull",
        "critical",
        'mlp_node_disk_bytes{state="available"} / ignoring (state) mlp_node_disk_bytes{state="total"}',
        "<",
        0.1,
        5 * MINUTE_S,
        "The disk of node {node} is nearly full",
        "{value} of the file system of the hub's state directory on {node} is free; the threshold is 10%.",
        "The file system with the hub's state directory has less than 10% left. Below its floor, no job starts.",
        "[A full disk](../how-to/operate.md) has the order of what stops, and what to delete.",
        "%",
    ),
    AlertRule(
        "MLPDatabaseSlow",
        "warning",
        "histogram_quantile(0.99, sum by (le) (rate(mlp_store_commit_duration_seconds_bucket[10m])))",
        ">",
        1,
        10 * MINUTE_S,
        "The database is slow",
        "One commit in a hundred takes longer than {value}.",
        "Each change waits for a commit, so requests and starts of jobs are slow too.",
        "Look at the disk of the database, and at other work on its machine.",
        "s",
    ),
    AlertRule(
        "MLPRequestsFail",
        "warning",
        'sum(rate(mlp_http_requests_total{code="5xx"}[10m])) / sum(rate(mlp_http_requests_total[10m]))',
        ">",
        0.02,
        5 * MINUTE_S,
        "Requests fail in the service",
        "{value} of the requests of ten minutes failed; the threshold is 2%.",
        "The service answers requests with a status of 5xx: it has an error, or a part that it needs is away.",
        "`mlp_problem` names a part that is away. Otherwise the log of the service has the error and the request.",
        "%",
    ),
    AlertRule(
        "MLPPointsBehind",
        "warning",
        "histogram_quantile(0.9, sum by (le) (rate(mlp_points_delay_seconds_bucket[10m])))",
        ">",
        60,
        10 * MINUTE_S,
        "Curves of jobs are behind",
        "One batch of metric points in ten is stored {value} or more after its newest point.",
        "Metric points of jobs arrive late. Nothing is lost: ranks keep them in a file until they are stored.",
        "With Kafka, look at the broker. Without, look at the database and at the load of the service.",
        "s",
    ),
    AlertRule(
        "MLPNoticesBehind",
        "warning",
        "max(mlp_notices_oldest_age_seconds)",
        ">",
        90_000,
        10 * MINUTE_S,
        "Notices are not sent",
        "The oldest notice has waited for {value}.",
        "Notices to people wait for more than a day, which is longer than any quiet hours.",
        "The page of the notifications shows why a channel refuses them. `mlp_notices_sent_total` counts by kind of channel.",
        "s",
    ),
    AlertRule(
        "MLPCertificateEnds",
        "warning",
        "min(mlp_certificate_expiry_timestamp_seconds) - time()",
        "<",
        1_209_600,
        10 * MINUTE_S,
        "The certificate of the public port ends soon",
        "The certificate of the public port ends in {value}.",
        "The certificate of the public port ends within 14 days. Browsers refuse it afterwards.",
        "Put the renewed certificate in the file of `MLP_TLS_CERT` and restart the hub. `mlp-hub doctor` checks its names and its end.",
        "s",
    ),
    AlertRule(
        "MLPBackupOld",
        "warning",
        "time() - max(mlp_backup_last_timestamp_seconds)",
        ">",
        691_200,
        10 * MINUTE_S,
        "The last backup is old",
        "The last backup was made {value} ago.",
        "`mlp-hub backup` made its last backup more than eight days ago. A site that backs up by other means never gets this alert.",
        "Look at the log of the program that calls `mlp-hub backup`, and at the room where it writes.",
        "s",
    ),
    AlertRule(
        "MLPPointsLag",
        "warning",
        "max(mlp_points_lag_messages)",
        ">",
        10_000,
        10 * MINUTE_S,
        "Messages with metric points pile up in Kafka",
        "Kafka has {value} messages that the service has not read.",
        "The service reads metric points more slowly than jobs write them, or not at all. Nothing is lost while Kafka keeps them.",
        "Compare `mlp_store_commit_duration_seconds`: a slow database is the usual reason. Check that Kafka keeps messages for long enough.",
    ),
)
"""All rules. The first five are those that every site wants: cpu, gpu, memory, failures, a team over its quota."""


def rules_file(pages: str) -> dict[str, Any]:
    """Return the rule file of Prometheus. `pages` is the address of the documentation, with a slash at its end."""
    return {"groups": [{"name": GROUP, "rules": [_of_prometheus(rule, pages) for rule in RULES]}]}


def inhibitions() -> dict[str, Any]:
    """Return the part of Alertmanager's configuration that silences all other alerts while the hub is away."""
    others = f'alertname=~"MLP.+",alertname!="{ABSENT}"'
    return {
        "inhibit_rules": [
            {
                "source_matchers": [f'alertname="{ABSENT}"'],
                "target_matchers": others.split(","),
            }
        ]
    }


def scrape_config(scheme: str, host: str, path: str, token_file: str, base: str) -> dict[str, Any]:
    """Return the scrape configuration of Prometheus for the platform and for JupyterHub, with one token for both."""
    common: dict[str, Any] = {
        "scheme": scheme,
        "authorization": {"type": "Bearer", "credentials_file": token_file},
        "static_configs": [{"targets": [host]}],
    }
    return {
        "scrape_configs": [
            {"job_name": GROUP, "metrics_path": path, **common},
            {"job_name": "jupyterhub", "metrics_path": f"{base}/hub/metrics", **common},
        ]
    }


def anchor(rule: AlertRule) -> str:
    """Return the anchor of a rule's section on the page of alerts."""
    return rule.name.lower()


class _Labels(dict[str, str]):
    """Templates of Prometheus by the names in our sentences."""

    def __missing__(self, name: str) -> str:
        return "{{ $labels." + name + " }}"


_VALUES = {
    "%": "{{ $value | humanizePercentage }}",
    "s": "{{ $value | humanizeDuration }}",
    "": "{{ $value | humanize }}",
}


def _of_prometheus(rule: AlertRule, pages: str) -> dict[str, Any]:
    labels = _Labels(value=_VALUES[rule.unit])
    return {
        "alert": rule.name,
        "expr": rule.expression,
        "for": f"{rule.for_s // MINUTE_S}m",
        "labels": {"severity": rule.severity},
        "annotations": {
            "summary": rule.summary.format_map(labels),
            "description": rule.description.format_map(labels),
            "runbook_url": f"{pages}{PAGE}#{anchor(rule)}",
        },
    }

"""The table of alert rules; `rule_files` writes the files of Prometheus and Alertmanager from it.

A rule compares one value with one threshold. `value` is the measure of the value by labels: Prometheus gets its query, and the
service computes it from its own numbers. The alert fires once `value op threshold` has held for `for_s` seconds.
"""

from __future__ import annotations

from mlp_hub.service.monitoring.alert_rule import AlertRule
from mlp_hub.service.monitoring.measures import (
    AbsentOf,
    AgeOf,
    Complement,
    FirstOf,
    Grouped,
    QuantileOf,
    Quotient,
    RuleGuard,
    Selected,
    TimeUntil,
    Where,
    Windowed,
)
from mlp_language.message import msg

MINUTE_S = 60
"""Given: seconds of a minute."""
COUNT = "1"
"""Unit of counted things: their increase is an estimate with a fraction, which no reader expects."""
ABSENT = "MLPHubAbsent"
INHIBITING = (ABSENT,)
"""Names of the alerts that inhibit all others while they fire."""


def _of(metric: str, **where: str) -> Selected:
    """Return a selection by labels that have one of some values, written as `a|b`."""
    return Selected(metric, tuple(Where(label, tuple(one.split("|"))) for label, one in where.items()))


def _window(function: str, minutes: int, metric: str, **where: str) -> Windowed:
    return Windowed(function, _of(metric, **where), minutes * MINUTE_S)


def _part(metric: str) -> Quotient:
    """Return the available part of a node's whole."""
    return Quotient(_of(metric, state="available"), _of(metric, state="total"), ignoring=("state",))


_CPU = "mlp_node_cpu_seconds_total"
_IDLE = Grouped("sum", _window("rate", 5, _CPU, mode="idle|iowait"), ("node",))
_ALL = Grouped("sum", _window("rate", 5, _CPU), ("node",))
_CORES = Quotient(
    Grouped("sum", _of("mlp_node_cpu_used_cores"), ("node",)),
    Grouped("sum", _of("mlp_node_capacity", resource="cpu"), ("node",)),
)
_ENDED = _window("increase", 60, "mlp_jobs_ended_total", result="finished|failed")
_FAILED = _window("increase", 60, "mlp_jobs_ended_total", result="failed")
_BY_TENANT = ("tenant",)
ENOUGH_ENDED = 9.5
"""Tuning: jobs that ended within the hour, below which the share of failures is not judged: ten, as an estimate of an increase has them."""

RULES: tuple[AlertRule, ...] = (
    AlertRule(
        "MLPNodeCpuHigh",
        "warning",
        FirstOf(Complement(Quotient(_IDLE, _ALL)), _CORES),
        ">",
        0.8,
        10 * MINUTE_S,
        msg("The processors of node {node} are busy").template,
        msg("{value} of the processor time of node {node} is used; the threshold is 80 %.").template,
        msg(
            "More than 80 % of the processor time of a node was used for ten minutes. Jobs that compute do this; it is a fault only if "
            "notebooks and pages become slow."
        ).template,
        'Compare `mlp_tenant_used{resource="cpu"}` with `mlp_tenant_held{resource="cpu"}` to find the team. On one machine, lower '
        "`MLP_NODE_CPU_OVERCOMMIT`, or add nodes.",
        "%",
    ),
    AlertRule(
        "MLPNodeGpuHigh",
        "info",
        Grouped("avg", _of("mlp_node_gpu_utilization_ratio"), ("node",)),
        ">",
        0.9,
        10 * MINUTE_S,
        msg("The GPUs of node {node} are busy").template,
        msg("The GPUs of node {node} compute {value} of the time; the threshold is 90 %.").template,
        msg(
            "The GPUs of a node computed for more than 90 % of ten minutes on average. This is good use, and a sign that more work would wait."
        ).template,
        "Look at the queue: if jobs wait for GPUs for hours, plan more of them, or lend idle quota between teams.",
        "%",
    ),
    AlertRule(
        "MLPNodeMemoryHigh",
        "critical",
        Complement(_part("mlp_node_memory_bytes")),
        ">",
        0.95,
        5 * MINUTE_S,
        msg("Node {node} has little memory left").template,
        msg("{value} of the memory of node {node} is used; the threshold is 95 %.").template,
        msg(
            "Less than 5 % of the memory of a node can still be given to programs. The kernel may kill processes soon."
        ).template,
        "`make status` shows the memory of the hub's processes. Suspend the largest job, or raise `MLP_NODE_RAM_RESERVE`, so that less "
        "memory is given to jobs.",
        "%",
    ),
    AlertRule(
        "MLPJobFailuresHigh",
        "warning",
        Quotient(Grouped("sum", _FAILED), Grouped("sum", _ENDED)),
        ">",
        0.1,
        2 * MINUTE_S,
        msg("Many jobs fail").template,
        msg("{value} of the jobs that ended within an hour failed; the threshold is 10 %.").template,
        msg(
            "More than 10 % of the jobs that ended within the last hour failed, and at least ten ended. Cancelled jobs do not count."
        ).template,
        "`mlp_jobs_failed_total` has the causes. `node-lost` and `start-failed` are faults of the platform; `out-of-memory` asks for "
        "more memory per rank; `program-error` is for the owners. `MLPTenantJobFailuresHigh` names the team, if it is one.",
        "%",
        RuleGuard((), Grouped("sum", _ENDED), ">=", ENOUGH_ENDED),
    ),
    AlertRule(
        "MLPTenantOverQuota",
        "warning",
        _of("mlp_tenant_over_limit"),
        ">",
        0,
        5 * MINUTE_S,
        msg("Team {tenant} holds more than its quota").template,
        msg(
            "Team {tenant} holds {value} of {resource} more than its limit, in cores, devices or bytes."
        ).template,
        msg(
            "A team holds more than its quota and what it may borrow. This happens after its quota was lowered, or when files grew."
        ).template,
        "Nothing of the team starts until it holds less. Raise the quota, or ask its members to end jobs or delete files: the page of the "
        "team lists the holders.",
    ),
    AlertRule(
        "MLPTenantJobFailuresHigh",
        "warning",
        Quotient(Grouped("sum", _FAILED, _BY_TENANT), Grouped("sum", _ENDED, _BY_TENANT)),
        ">",
        0.1,
        2 * MINUTE_S,
        msg("Many jobs of team {tenant} fail").template,
        msg(
            "{value} of the jobs of team {tenant} that ended within an hour failed; the threshold is 10 %."
        ).template,
        msg(
            "More than 10 % of a team's jobs that ended within the last hour failed, and at least ten ended."
        ).template,
        "The runs of the team show the causes: search for `state=error`. A shared environment or dataset is the usual reason if several "
        "members are affected.",
        "%",
        RuleGuard(_BY_TENANT, Grouped("sum", _ENDED, _BY_TENANT), ">=", ENOUGH_ENDED),
    ),
    AlertRule(
        ABSENT,
        "critical",
        AbsentOf(_of("mlp_build_info")),
        ">",
        0,
        2 * MINUTE_S,
        msg("The hub cannot be scraped").template,
        msg("Prometheus has no metrics of the hub.").template,
        msg(
            "Prometheus gets no answer: the service is down, its address is wrong, or the token is not valid any more."
        ).template,
        "Open the target in Prometheus: 401 or 403 mean the token, a refused connection means the service. `make status` and `make logs` "
        "on the hub's machine show the rest. All other alerts are inhibited meanwhile.",
    ),
    AlertRule(
        "MLPNoLeader",
        "critical",
        Grouped("sum", _of("mlp_lease_held")),
        "<",
        1,
        2 * MINUTE_S,
        msg("No service leads").template,
        msg("{value} replicas hold the lease of the scheduler; no job starts.").template,
        msg(
            "No replica of the service holds the lease, so nothing is scheduled. Running jobs continue."
        ).template,
        "Look at the database: each replica needs it to take the lease. [Two services](../how-to/replicas.md) describes the takeover.",
    ),
    AlertRule(
        "MLPLeaseFlapping",
        "warning",
        Grouped("max", _of("mlp_lease_recent_takeovers")),
        ">",
        3,
        0,
        msg("Services take the lease from each other").template,
        msg("The lease was taken {value} times within 15 minutes.").template,
        msg(
            "Replicas lose the lease and take it again and again: each takeover delays requests for seconds."
        ).template,
        "The usual causes are a slow or unreachable database, a machine without processor time, and a service that ends again and again. Compare "
        "`mlp_store_commit_duration_seconds` and `mlp_event_loop_lag_seconds`, and look at the log of the service. Each start of a service counts too.",
        COUNT,
    ),
    AlertRule(
        "MLPNoCycle",
        "critical",
        AgeOf(Grouped("max", _of("mlp_scheduler_last_cycle_timestamp_seconds"))),
        ">",
        300,
        MINUTE_S,
        msg("The scheduler does not run").template,
        msg("The last successful scheduling cycle ended {value} ago.").template,
        msg(
            "A cycle runs at least each 30 seconds. None has succeeded for five minutes, so no job starts."
        ).template,
        '`mlp_scheduler_cycle_duration_seconds_count{outcome="failed"}` counts failed cycles, and the log of the service has their errors.',
        "s",
    ),
    AlertRule(
        "MLPQueueStuck",
        "warning",
        Grouped(
            "max",
            Selected(
                "mlp_queue_oldest_age_seconds", (Where("reason", ("Gated", "Suspended"), negated=True),)
            ),
            ("reason",),
        ),
        ">",
        86_400,
        10 * MINUTE_S,
        msg("A job waits for more than a day").template,
        msg("The oldest job that waits for {reason} is in the queue for {value}.").template,
        msg("A job has waited for more than a day for a reason that its user did not choose.").template,
        "The page *Queue* shows why it waits and when it is expected to start. The [reasons](reasons.md) have the remedies.",
        "s",
    ),
    AlertRule(
        "MLPGangNeverFits",
        "warning",
        Grouped(
            "sum",
            _of("mlp_queue_jobs", reason="NoMatchingFlavor|ExceedsMaxQuota|TopologyPlacementFailed"),
            ("reason",),
        ),
        ">",
        0,
        30 * MINUTE_S,
        msg("Jobs wait for room that does not exist").template,
        msg("{value} jobs wait because of {reason}.").template,
        msg(
            "Jobs ask for a device, a topology or an amount that no nodes have at present. They wait until nodes return."
        ).template,
        "Compare the request with the page *Nodes*. If a node is lost or drained, return it; otherwise tell the owner to ask for less.",
    ),
    AlertRule(
        "MLPPlatformProblem",
        "critical",
        Grouped("max", _of("mlp_problem"), ("component", "reason")),
        ">",
        0,
        2 * MINUTE_S,
        msg("A part of the platform does not work: {component}").template,
        msg("The service reports the problem {reason} of {component}.").template,
        msg("The service reports a problem, as `/health` does.").template,
        "The table of [what does not work](../how-to/operate.md) has each reason.",
    ),
    AlertRule(
        "MLPNodeLost",
        "critical",
        _of("mlp_node_ready"),
        "<",
        1,
        5 * MINUTE_S,
        msg("Node {node} does not answer").template,
        msg("Node {node} has not been ready for five minutes.").template,
        msg("A node is not ready. Its jobs went back to the queue without using a retry.").template,
        "Look at the node itself. If it will be away for long, drain it: `mlp-hub node drain NAME`.",
    ),
    AlertRule(
        "MLPGpuErrors",
        "critical",
        Grouped("max", _of("DCGM_FI_DEV_XID_ERRORS"), ("Hostname", "hostname", "gpu")),
        ">",
        0,
        MINUTE_S,
        msg("GPU {gpu} reports an error").template,
        msg("GPU {gpu} of {hostname}{Hostname} reports Xid {value}.").template,
        msg(
            "NVIDIA's driver reports an Xid error. It needs the DCGM exporter; without it, this rule never fires."
        ).template,
        "Look the number up in NVIDIA's list of Xid errors. Drain the node if it is 48, 63, 64, 79, 94 or 95.",
    ),
    AlertRule(
        "MLPGpuIdle",
        "info",
        Grouped("sum", _of("mlp_node_idle_gpus"), ("node",)),
        ">",
        0,
        5 * MINUTE_S,
        msg("GPUs of node {node} are held and idle").template,
        msg("Jobs hold {value} GPUs of node {node} that did nothing for an hour or longer.").template,
        msg("Jobs hold GPUs that did nothing for an hour, and neither did their processors.").template,
        "The page of each team lists these jobs under *Idle servers and GPUs*. [A policy for unused GPUs]"
        "(../how-to/idle-work.md) ends them after a countdown.",
    ),
    AlertRule(
        "MLPDiskFull",
        "critical",
        _part("mlp_node_disk_bytes"),
        "<",
        0.1,
        5 * MINUTE_S,
        msg("The disk of node {node} is nearly full").template,
        msg(
            "{value} of the file system of the hub's state directory on {node} is free; the threshold is 10 %."
        ).template,
        msg(
            "The file system with the hub's state directory has less than 10 % left. Below its floor, no job starts."
        ).template,
        "[A full disk](../how-to/operate.md) has the order of what stops, and what to delete.",
        "%",
    ),
    AlertRule(
        "MLPDatabaseSlow",
        "warning",
        QuantileOf(
            0.99, Grouped("sum", _window("rate", 10, "mlp_store_commit_duration_seconds_bucket"), ("le",))
        ),
        ">",
        1,
        10 * MINUTE_S,
        msg("The database is slow").template,
        msg("One commit in a hundred takes longer than {value}.").template,
        msg("Each change waits for a commit, so requests and starts of jobs are slow too.").template,
        "Look at the disk of the database, and at other work on its machine.",
        "s",
    ),
    AlertRule(
        "MLPRequestsFail",
        "warning",
        Quotient(
            Grouped("sum", _window("rate", 10, "mlp_http_requests_total", code="5xx")),
            Grouped("sum", _window("rate", 10, "mlp_http_requests_total")),
        ),
        ">",
        0.02,
        5 * MINUTE_S,
        msg("Requests fail in the service").template,
        msg("{value} of the requests of ten minutes failed; the threshold is 2 %.").template,
        msg(
            "The service answers requests with a status of 5xx: it has an error, or a part that it needs is away."
        ).template,
        "`mlp_problem` names a part that is away. Otherwise the log of the service has the error and the request.",
        "%",
    ),
    AlertRule(
        "MLPPointsBehind",
        "warning",
        QuantileOf(0.9, Grouped("sum", _window("rate", 10, "mlp_points_delay_seconds_bucket"), ("le",))),
        ">",
        60,
        10 * MINUTE_S,
        msg("Curves of jobs are behind").template,
        msg("One batch of metric points in ten is stored {value} or more after its newest point.").template,
        msg(
            "Metric points of jobs arrive late. Nothing is lost: ranks keep them in a file until they are stored."
        ).template,
        "With Kafka, look at the broker. Without, look at the database and at the load of the service.",
        "s",
    ),
    AlertRule(
        "MLPNoticesBehind",
        "warning",
        Grouped("max", _of("mlp_notices_oldest_age_seconds")),
        ">",
        90_000,
        10 * MINUTE_S,
        msg("Notices are not sent").template,
        msg("The oldest notice has waited for {value}.").template,
        msg("Notices to people wait for more than a day, which is longer than any quiet hours.").template,
        "The page of the notifications shows why a channel refuses them. `mlp_notices_sent_total` counts by kind of channel.",
        "s",
    ),
    AlertRule(
        "MLPAuditUnshipped",
        "warning",
        Grouped("max", _of("mlp_audit_unshipped_age_seconds"), ("receiver",)),
        ">",
        900,
        5 * MINUTE_S,
        msg("The audit log does not reach the {receiver}").template,
        msg("The oldest entry that the {receiver} does not have is {value} old.").template,
        msg(
            "A receiver of the audit log (`MLP_AUDIT_SHIP_SYSLOG`, `MLP_AUDIT_SHIP_FILE`) accepts no entries. Nothing is lost: they wait in the "
            "database, and retention removes none of them."
        ).template,
        "The log of the service has the error. Over TCP and TLS the receiver must end a connection that the hub has ended.",
        "s",
    ),
    AlertRule(
        "MLPCertificateEnds",
        "warning",
        TimeUntil(Grouped("min", _of("mlp_certificate_expiry_timestamp_seconds"))),
        "<",
        1_209_600,
        10 * MINUTE_S,
        msg("The certificate of the public port ends soon").template,
        msg("The certificate of the public port ends in {value}.").template,
        msg(
            "The certificate of the public port ends within 14 days. Browsers refuse it afterwards."
        ).template,
        "Put the renewed certificate in the file of `MLP_TLS_CERT` and restart the hub. `mlp-hub doctor` checks its names and its end.",
        "s",
    ),
    AlertRule(
        "MLPBackupOld",
        "warning",
        AgeOf(Grouped("max", _of("mlp_backup_last_timestamp_seconds"))),
        ">",
        691_200,
        10 * MINUTE_S,
        msg("The last backup is old").template,
        msg("The last backup was made {value} ago.").template,
        msg(
            "`mlp-hub backup` made its last backup more than eight days ago. A site that backs up by other means never gets this alert."
        ).template,
        "Look at the log of the program that calls `mlp-hub backup`, and at the room where it writes.",
        "s",
    ),
    AlertRule(
        "MLPPointsLag",
        "warning",
        Grouped("max", _of("mlp_points_lag_messages")),
        ">",
        10_000,
        10 * MINUTE_S,
        msg("Messages with metric points pile up in Kafka").template,
        msg("Kafka has {value} messages that the service has not read.").template,
        msg(
            "The service reads metric points more slowly than jobs write them, or not at all. Nothing is lost while Kafka keeps them."
        ).template,
        "Compare `mlp_store_commit_duration_seconds`: a slow database is the usual reason. Check that Kafka keeps messages for long enough.",
    ),
)
"""All rules. The first five are those that every site wants: cpu, gpu, memory, failures, a team over its quota."""


PROMETHEUS_RULES: tuple[AlertRule, ...] = (
    AlertRule(
        "MLPNotificationsFail",
        "warning",
        Grouped("sum", _window("increase", 30, "alertmanager_notifications_failed_total"), ("integration",)),
        ">",
        0,
        MINUTE_S,
        msg("Alertmanager cannot notify anybody by {integration}").template,
        msg("{value} notifications by {integration} failed within half an hour.").template,
        msg(
            "Alertmanager could not deliver notifications. This alert cannot arrive by the same way: look at the pages of Prometheus and "
            "Alertmanager, or have a second way, such as a webhook."
        ).template,
        "Alertmanager's log has the error. For mail, `make watch` prints at its start whether the server can be used, and so does "
        "`mlp-hub doctor`. A server without STARTTLS needs `MLP_MAIL_SECURITY=none`.",
        COUNT,
    ),
)
"""Rules that Prometheus alone evaluates: the service does not have their metrics."""
ALL_RULES = (*RULES, *PROMETHEUS_RULES)

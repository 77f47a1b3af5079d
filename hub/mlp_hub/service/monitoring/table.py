"""The table of all metrics that `GET /metrics` shows; the reference page is generated from it.

Names follow Prometheus: one prefix, base units, `_total` of counters, `_info` of gauges for joins. No label names a
job or a run, because their number only grows; only `OF_PEOPLE` names people, as many as the operator wishes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mlp_hub.point_targets import KINDS


class MetricKind(StrEnum):
    """Type of a metric, in the words of Prometheus."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"


class MetricScope(StrEnum):
    """Replicas that show a metric."""

    REPLICA = "each replica"
    LEADER = "the leader"


@dataclass(frozen=True, slots=True)
class MetricRow:
    """Row of the table. `name` is as queries have it; `buckets` are upper bounds, without the last one."""

    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...] = ()
    unit: str = ""
    buckets: tuple[float, ...] = ()
    of: MetricScope = MetricScope.LEADER


_C, _G, _H, _S = MetricKind.COUNTER, MetricKind.GAUGE, MetricKind.HISTOGRAM, MetricKind.SUMMARY
_EACH = MetricScope.REPLICA
_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86_400.0
_REQUEST_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_TENANT_S = (0.25, 1.0)  # the bounds of Apdex; each bound is a series of each tenant
_SHORT_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
_WAIT_S = (1.0, 5.0, 15.0, _MINUTE, 300.0, 900.0, _HOUR, 4 * _HOUR, 12 * _HOUR, _DAY, 3 * _DAY)
_START_S = (0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_RUN_S = (1.0, 10.0, _MINUTE, 300.0, 900.0, _HOUR, 4 * _HOUR, 12 * _HOUR, _DAY, 3 * _DAY, 7 * _DAY)
_DELAY_S = (0.1, 0.5, 1.0, 5.0, 15.0, _MINUTE, 300.0, 900.0, _HOUR)

# --- the service

BUILD = MetricRow(
    "mlp_build_info", _G, "1; the version of the hub and its executor.", ("version", "executor"), of=_EACH
)
REPLICA = MetricRow(
    "mlp_replica_info",
    _G,
    "1; the role of this replica (leader, follower, standalone), to join with all other metrics of its instance.",
    ("replica", "replica_role"),
    of=_EACH,
)
PROBLEMS = MetricRow(
    "mlp_problem",
    _G,
    "1 for each part of the platform that does not work now; absent while it works.",
    ("component", "reason"),
    of=_EACH,
)
LEASE_HELD = MetricRow(
    "mlp_lease_held", _G, "Whether this replica leads: it holds the lease of the scheduler.", of=_EACH
)
LEASE_EPOCH = MetricRow("mlp_lease_epoch", _G, "Epoch of the lease that this replica held last.", of=_EACH)
LEASE_TAKEOVERS = MetricRow(
    "mlp_lease_recent_takeovers",
    _G,
    "Times that any replica began to lead within the last 15 minutes, as this replica knows; restarts do not forget them.",
    of=_EACH,
)
LEASE_CHANGES = MetricRow(
    "mlp_lease_transitions_total",
    _C,
    "Times that this replica began to lead (acquired) or ceased to (lost).",
    ("event",),
    of=_EACH,
)
LOOP_LAG = MetricRow(
    "mlp_event_loop_lag_seconds",
    _H,
    "Delay of a timer of the service's event loop, measured each half second.",
    unit="seconds",
    buckets=_SHORT_S,
    of=_EACH,
)
REQUESTS = MetricRow(
    "mlp_http_requests_total",
    _C,
    "Answered requests of the API by group of routes and class of the status.",
    ("route_group", "code"),
    of=_EACH,
)
REQUEST_S = MetricRow(
    "mlp_http_request_duration_seconds",
    _H,
    "Duration of requests of the API, from the first byte of the headers to the answer.",
    ("route_group",),
    "seconds",
    _REQUEST_S,
    of=_EACH,
)
TENANT_REQUEST_S = MetricRow(
    "mlp_tenant_request_duration_seconds",
    _H,
    "Duration of requests of the API for a tenant: that of the path, or the only one of the caller.",
    ("tenant",),
    "seconds",
    _TENANT_S,
    of=_EACH,
)
TENANT_REQUEST_ERRORS = MetricRow(
    "mlp_tenant_request_errors_total",
    _C,
    "Of these requests, those that failed in the service (status 5xx).",
    ("tenant",),
    of=_EACH,
)
WEBSOCKETS = MetricRow("mlp_websockets", _G, "Open WebSockets.", of=_EACH)
COMMIT_S = MetricRow(
    "mlp_store_commit_duration_seconds",
    _H,
    "Duration of transactions of the database, from the first change to the end of the commit.",
    ("result",),
    "seconds",
    _SHORT_S,
    of=_EACH,
)
WRITES = MetricRow("mlp_store_writes_total", _C, "Changes in these transactions.", of=_EACH)
WORK_DEPTH = MetricRow(
    "mlp_workqueue_depth", _G, "Objects in the work queue: waiting for a worker, or for a retry.", ("state",)
)
WORK_FAILURES = MetricRow("mlp_workqueue_failures_total", _C, "Turns of workers that failed and are retried.")
CLUSTER_CALLS = MetricRow(
    "mlp_cluster_requests_total", _C, "Requests to the API of the cluster.", ("request",), of=_EACH
)

CERTIFICATE_END = MetricRow(
    "mlp_certificate_expiry_timestamp_seconds",
    _G,
    "End of the certificate of the public port, in seconds since the epoch; absent where the hub does not speak TLS.",
    unit="seconds",
)
BACKUP_AT = MetricRow(
    "mlp_backup_last_timestamp_seconds",
    _G,
    "Time of the last backup that `mlp-hub backup` made and read back, in seconds since the epoch; absent before the first.",
    unit="seconds",
)
BACKUP_SIZE = MetricRow("mlp_backup_last_size_bytes", _G, "Size of the file of this backup.", unit="bytes")

# --- the scheduler and its queue

CYCLE_S = MetricRow(
    "mlp_scheduler_cycle_duration_seconds",
    _H,
    "Duration of scheduling cycles with the storage of their decisions, by outcome: admitted, nothing, held, failed.",
    ("outcome",),
    "seconds",
    _SHORT_S,
)
LAST_CYCLE = MetricRow(
    "mlp_scheduler_last_cycle_timestamp_seconds",
    _G,
    "End of the last cycle that did not fail, in seconds since the epoch.",
    unit="seconds",
)
QUEUE = MetricRow(
    "mlp_queue_jobs", _G, "Jobs that wait, by the reason that was last found for each.", ("reason",)
)
QUEUE_AGE = MetricRow(
    "mlp_queue_oldest_age_seconds",
    _G,
    "Time in the queue of the job that waits longest, by reason.",
    ("reason",),
    "seconds",
)
QUEUE_REQUESTS = MetricRow(
    "mlp_queue_requests", _G, "Pending requests of workloads other than jobs, as notebook servers.", ("kind",)
)
ADMISSIONS = MetricRow("mlp_admissions_total", _C, "Admitted jobs.", ("tenant",))
ADMISSION_WAIT = MetricRow(
    "mlp_admission_wait_seconds",
    _H,
    "Time in the queue up to an admission, by priority.",
    ("priority",),
    "seconds",
    _WAIT_S,
)
TENANT_WAIT = MetricRow(
    "mlp_tenant_admission_wait_seconds",
    _S,
    "Time in the queue up to an admission, by tenant.",
    ("tenant",),
    "seconds",
)
START_S = MetricRow(
    "mlp_job_start_seconds",
    _H,
    "Time from an admission until all ranks run.",
    unit="seconds",
    buckets=_START_S,
)
EVICTIONS = MetricRow(
    "mlp_evictions_total",
    _C,
    "Attempts that ended without an end of their job: preempted (other work, or a drained node), resized, suspended, "
    "or the cause of a failure that is retried.",
    ("cause",),
)
PREEMPTIONS = MetricRow(
    "mlp_preemptions_total",
    _C,
    "Decisions of the scheduler to stop a running job for another one, by reason.",
    ("reason",),
)

# --- jobs

JOBS = MetricRow("mlp_jobs", _G, "Jobs that have not ended, by phase.", ("phase",))
SUBMITTED = MetricRow("mlp_jobs_submitted_total", _C, "Submitted jobs.", ("tenant",))
ENDED = MetricRow(
    "mlp_jobs_ended_total", _C, "Jobs that ended: finished, failed, cancelled.", ("tenant", "result")
)
FAILED = MetricRow("mlp_jobs_failed_total", _C, "Failed jobs by cause.", ("cause",))
PHASE_S = MetricRow(
    "mlp_job_phase_duration_seconds",
    _H,
    "Time that ended jobs spent waiting and running, all attempts together, by result.",
    ("phase", "result"),
    "seconds",
    _RUN_S,
)
POINTS = MetricRow("mlp_points_stored_total", _C, "Metric points of jobs that were stored.")
POINTS_DELAY = MetricRow(
    "mlp_points_delay_seconds",
    _H,
    "Age of the newest point of a batch when it was stored: how far curves are behind their jobs.",
    unit="seconds",
    buckets=_DELAY_S,
)
POINTS_LAG = MetricRow(
    "mlp_points_lag_messages",
    _G,
    "Messages with metric points that Kafka has and the service has not read; absent without Kafka.",
)
NOTICES_SENT = MetricRow(
    "mlp_notices_sent_total",
    _C,
    "Attempts to send notices, by kind of channel and result: accepted, refused.",
    ("channel", "result"),
)
NOTICES_BEHIND = MetricRow(
    "mlp_notices_behind", _G, "Notices that wait to be sent, counted once for each channel."
)
NOTICES_AGE = MetricRow(
    "mlp_notices_oldest_age_seconds", _G, "Age of the oldest of these notices.", unit="seconds"
)
SHIPPING_BEHIND = MetricRow(
    "mlp_audit_unshipped_links",
    _G,
    "Entries of the audit log, with repetitions and checkpoints, that a receiver (syslog, file) does not have; absent without one.",
    ("receiver",),
)
SHIPPING_AGE = MetricRow(
    "mlp_audit_unshipped_age_seconds",
    _G,
    "Age of the oldest of these entries; 0 if there are none.",
    ("receiver",),
    unit="seconds",
)
TRACES = MetricRow(
    "mlp_traces_runs_total",
    _C,
    "Ended runs whose traces were exported to the collector, or dropped because it refused them or did not answer for long.",
    ("result",),
)
EXPORTED = MetricRow(
    "mlp_points_exported_total",
    _C,
    f"Metric points of jobs by exporter ({', '.join(KINDS)}) and result: sent, or dropped because the target refused them or values of them, or their job was deleted before.",
    ("exporter", "result"),
)
EXPORT_FAILURES = MetricRow(
    "mlp_points_export_failures_total",
    _C,
    "Requests of an exporter that failed and are repeated: the target did not answer, or not now.",
    ("exporter",),
)
EXPORT_BEHIND = MetricRow(
    "mlp_points_export_behind",
    _G,
    "Metric points that are stored and not yet exported, by exporter; absent without one.",
    ("exporter",),
)

# --- tenants

TENANT_JOBS = MetricRow(
    "mlp_tenant_jobs", _G, "Jobs of a tenant that have not ended: waiting, running.", ("tenant", "state")
)
QUOTA = MetricRow(
    "mlp_tenant_quota",
    _G,
    "Quota of a tenant; absent without a limit. Cores, devices, or bytes, as the resource is.",
    ("tenant", "resource"),
)
HELD = MetricRow(
    "mlp_tenant_held",
    _G,
    "Amount that the workloads and files of a tenant hold of its quota: cores, devices, bytes.",
    ("tenant", "resource"),
)
BORROWED = MetricRow(
    "mlp_tenant_borrowed",
    _G,
    "Part of this amount that is beyond the nominal quota and belongs to other tenants.",
    ("tenant", "resource"),
)
OVER = MetricRow(
    "mlp_tenant_over_limit",
    _G,
    "Amount that a tenant holds beyond its quota and what it may borrow; absent where it is within.",
    ("tenant", "resource"),
)
LENT = MetricRow(
    "mlp_tenant_lent", _G, "Idle quota of a tenant that others hold now.", ("tenant", "resource")
)
SHARE = MetricRow(
    "mlp_tenant_weighted_share",
    _G,
    "Dominant share of the cluster that a tenant holds, divided by its weight: the smallest is served first.",
    ("tenant",),
)
USED = MetricRow(
    "mlp_tenant_used",
    _G,
    "Amount that the ranks of a tenant's jobs really use: cores, bytes of memory.",
    ("tenant", "resource"),
)
APP_REQUESTS = MetricRow(
    "mlp_tenant_app_requests_total", _C, "Requests to the apps of a tenant, by the gateway.", ("tenant",)
)
APP_ERRORS = MetricRow(
    "mlp_tenant_app_errors_total", _C, "Of these, those answered with a status of 5xx.", ("tenant",)
)
APP_BYTES = MetricRow(
    "mlp_tenant_app_bytes_total",
    _C,
    "Bytes of bodies to (in) and from (out) the apps of a tenant.",
    ("tenant", "direction"),
    "bytes",
)
APP_LATENCY = MetricRow(
    "mlp_tenant_app_duration_seconds",
    _H,
    "Duration of requests to the apps of a tenant; without a sum.",
    ("tenant",),
    "seconds",
    (0.05, 0.25, 1.0, 10.0),
)

# --- nodes

NODE = MetricRow("mlp_node_info", _G, "1; a node and the kind of its GPUs.", ("node", "gpu_kind"))
NODE_READY = MetricRow("mlp_node_ready", _G, "Whether a node answers.", ("node",))
NODE_OPEN = MetricRow(
    "mlp_node_schedulable", _G, "Whether a node takes new ranks: it has no condition.", ("node",)
)
NODE_CONDITION = MetricRow(
    "mlp_node_condition",
    _G,
    "1 for each condition of a node, as NotReady or DiskPressure; absent without one.",
    ("node", "condition"),
)
NODE_CAPACITY = MetricRow(
    "mlp_node_capacity", _G, "Amount of a node: cores, devices, bytes.", ("node", "resource")
)
NODE_ALLOCATABLE = MetricRow(
    "mlp_node_allocatable", _G, "Amount of a node for workloads.", ("node", "resource")
)
NODE_HELD = MetricRow("mlp_node_held", _G, "Amount of a node that workloads hold.", ("node", "resource"))
NODE_IDLE_GPUS = MetricRow(
    "mlp_node_idle_gpus",
    _G,
    "GPUs of a node that jobs hold and that did nothing for an hour, as far as that is measured.",
    ("node",),
)
NODE_CPU = MetricRow(
    "mlp_node_cpu_seconds_total",
    _C,
    "Processor time of a node by mode (idle, user, system, iowait, steal, other), where the executor can read it.",
    ("node", "mode"),
    "seconds",
)
NODE_CORES = MetricRow(
    "mlp_node_cpu_used_cores",
    _G,
    "Cores of a node in use, where only that is measured: in a cluster with a metrics server.",
    ("node",),
)
NODE_MEMORY = MetricRow(
    "mlp_node_memory_bytes", _G, "Memory of a node: total, available.", ("node", "state"), "bytes"
)
NODE_DISK = MetricRow(
    "mlp_node_disk_bytes",
    _G,
    "File system of the hub's state directory on a node: total, available.",
    ("node", "state"),
    "bytes",
)
NODE_NETWORK = MetricRow(
    "mlp_node_network_bytes_total",
    _C,
    "Bytes that a node received (in) and sent (out), without its loopback interface.",
    ("node", "direction"),
    "bytes",
)
NODE_GPU = MetricRow(
    "mlp_node_gpu_utilization_ratio",
    _G,
    "Part of time that a GPU computed, from 0 to 1, by NVML.",
    ("node", "gpu"),
    "ratio",
)
NODE_GPU_MEMORY = MetricRow(
    "mlp_node_gpu_memory_bytes", _G, "Memory of a GPU: total, used.", ("node", "gpu", "state"), "bytes"
)
NODE_GPU_TEMPERATURE = MetricRow(
    "mlp_node_gpu_temperature_celsius", _G, "Temperature of a GPU.", ("node", "gpu"), "celsius"
)
NODE_GPU_POWER = MetricRow(
    "mlp_node_gpu_power_watts", _G, "Power that a GPU draws.", ("node", "gpu"), "watts"
)

# --- people, under the names that dashboards of JupyterHub look for; the setting `metrics_people` limits their number

DIRECTORY = MetricRow(
    "dirsize_total_size_bytes",
    _G,
    "Measured size of the home of a user. The directory is the user's name, escaped; the namespace is that of the team's pods.",
    ("namespace", "directory"),
    "bytes",
)
DIRECTORY_LIMIT = MetricRow(
    "dirsize_hard_limit_bytes",
    _G,
    "Size that this home can grow to: its own, and what its team has left of its storage. Absent without a quota.",
    ("namespace", "directory"),
    "bytes",
)
USER_GROUP = MetricRow(
    "jupyterhub_user_group_info",
    _G,
    "1; a user in a team, to join people with teams. The escaped name is that of the directory.",
    ("namespace", "usergroup", "username", "username_escaped", "username_safe"),
)
OF_PEOPLE = (DIRECTORY, DIRECTORY_LIMIT, USER_GROUP)
"""Rows that grow with people, and have names of other projects."""

METRICS: tuple[MetricRow, ...] = tuple(row for row in globals().values() if isinstance(row, MetricRow))
"""All rows, in the order of the reference page."""

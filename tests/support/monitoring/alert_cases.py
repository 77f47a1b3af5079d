"""Series with which each alert fires and does not, in promtool's notation, for Prometheus and for the service's own evaluation."""

from __future__ import annotations

import re

from mlp_hub.service.monitoring.alert_rules import ABSENT
from mlp_hub.service.monitoring.measures import LabelSet, Vector

Series = dict[str, str]

_CPU = 'mlp_node_cpu_seconds_total{node="n1",mode="%s"}'
_MEMORY = 'mlp_node_memory_bytes{node="n1",state="%s"}'
_DISK = 'mlp_node_disk_bytes{node="n1",state="%s"}'
_ENDED = 'mlp_jobs_ended_total{tenant="%s",result="%s"}'
_COMMITS = 'mlp_store_commit_duration_seconds_bucket{le="%s",result="committed"}'
_DELAYS = 'mlp_points_delay_seconds_bucket{le="%s"}'
_CORES = 'mlp_node_cpu_used_cores{node="%s"}'
_CAPACITY = 'mlp_node_capacity{node="%s",resource="cpu"}'
_BUSY = {_CPU % "user": "0+57x200", _CPU % "idle": "0+2x200", _CPU % "iowait": "0+1x200"}
_CALM = {_CPU % "user": "0+6x200", _CPU % "idle": "0+50x200", _CPU % "iowait": "0+4x200"}


def memory(available: int) -> Series:
    return {_MEMORY % "total": "100x200", _MEMORY % "available": f"{available}x200"}


def disk(available: int) -> Series:
    return {_DISK % "total": "100x200", _DISK % "available": f"{available}x200"}


def ended(tenant: str, failed: str, finished: str) -> Series:
    return {_ENDED % (tenant, "failed"): failed, _ENDED % (tenant, "finished"): finished}


CASES: dict[str, tuple[Series, Series]] = {
    "MLPNodeCpuHigh": (_BUSY, _CALM),
    "MLPNodeGpuHigh": (
        {'mlp_node_gpu_utilization_ratio{node="n1",gpu="0"}': "0.95x200"},
        {'mlp_node_gpu_utilization_ratio{node="n1",gpu="0"}': "0.95x200", 'mlp_node_gpu_utilization_ratio{node="n1",gpu="1"}': "0.5x200"},
    ),
    "MLPNodeMemoryHigh": (memory(4), memory(6)),
    "MLPJobFailuresHigh": (ended("red", "0+1x200", "0+5x200"), ended("red", "0+1x200", "0+10x200")),
    "MLPTenantOverQuota": (
        {'mlp_tenant_over_limit{tenant="red",resource="storage"}': "5e9x200"},
        {'mlp_tenant_held{tenant="red",resource="cpu"}': "8x200", 'mlp_tenant_quota{tenant="red",resource="cpu"}': "4x200"},
    ),
    # the one job of a team that failed is no rate
    "MLPTenantJobFailuresHigh": (
        ended("red", "0+1x200", "0x200") | ended("blue", "0x200", "0+100x200"),
        ended("red", "0 0 1x200", "0x200") | ended("blue", "0x200", "0+100x200"),
    ),
    ABSENT: ({}, {'mlp_build_info{version="1",executor="local"}': "1x200"}),
    "MLPNoLeader": (
        {'mlp_lease_held{instance="a"}': "0x200", 'mlp_lease_held{instance="b"}': "0x200"},
        {'mlp_lease_held{instance="a"}': "0x200", 'mlp_lease_held{instance="b"}': "1x200"},
    ),
    "MLPLeaseFlapping": (
        {'mlp_lease_recent_takeovers{instance="a"}': "0 4x200", 'mlp_lease_recent_takeovers{instance="b"}': "0x200"},
        {'mlp_lease_recent_takeovers{instance="a"}': "3x200", 'mlp_lease_recent_takeovers{instance="b"}': "2x200"},
    ),
    "MLPNoCycle": (
        {"mlp_scheduler_last_cycle_timestamp_seconds": "0x200"},
        {"mlp_scheduler_last_cycle_timestamp_seconds": "0+60x200"},
    ),
    "MLPQueueStuck": (
        {'mlp_queue_oldest_age_seconds{reason="WaitingForQuota"}': "90000x200"},
        {'mlp_queue_oldest_age_seconds{reason="Suspended"}': "90000x200", 'mlp_queue_oldest_age_seconds{reason="WaitingForQuota"}': "9000x200"},
    ),
    "MLPGangNeverFits": (
        {'mlp_queue_jobs{reason="NoMatchingFlavor"}': "1x200"},
        {'mlp_queue_jobs{reason="WaitingForResources"}': "100x200", 'mlp_queue_jobs{reason="NoMatchingFlavor"}': "0x200"},
    ),
    "MLPPlatformProblem": ({'mlp_problem{component="hub",reason="HubUnavailable"}': "1x200"}, {"up": "1x200"}),
    "MLPNodeLost": ({'mlp_node_ready{node="n1"}': "0x200"}, {'mlp_node_ready{node="n1"}': "1 0 0 1x200"}),
    "MLPGpuErrors": (
        {'DCGM_FI_DEV_XID_ERRORS{hostname="n1",gpu="0"}': "79x200"},
        {'DCGM_FI_DEV_XID_ERRORS{Hostname="n1",gpu="0"}': "0x200"},
    ),
    # idle GPUs that nobody holds are nobody's
    "MLPGpuIdle": (
        {'mlp_node_idle_gpus{node="n1"}': "2x200"},
        {'mlp_node_idle_gpus{node="n1"}': "0x200"},
    ),
    "MLPDiskFull": (disk(9), disk(11)),
    "MLPDatabaseSlow": (
        {_COMMITS % "1.0": "0+1x200", _COMMITS % "5.0": "0+10x200", _COMMITS % "+Inf": "0+10x200"},
        {_COMMITS % "0.01": "0+10x200", _COMMITS % "1.0": "0+10x200", _COMMITS % "+Inf": "0+10x200"},
    ),
    "MLPRequestsFail": (
        {'mlp_http_requests_total{route_group="jobs",code="5xx"}': "0+3x200", 'mlp_http_requests_total{route_group="jobs",code="2xx"}': "0+97x200"},
        {'mlp_http_requests_total{route_group="jobs",code="5xx"}': "0+1x200", 'mlp_http_requests_total{route_group="jobs",code="2xx"}': "0+99x200"},
    ),
    "MLPPointsBehind": (
        {_DELAYS % "60.0": "0+1x200", _DELAYS % "300.0": "0+10x200", _DELAYS % "+Inf": "0+10x200"},
        {_DELAYS % "1.0": "0+10x200", _DELAYS % "60.0": "0+10x200", _DELAYS % "+Inf": "0+10x200"},
    ),
    # the clock of these cases begins in 1970
    "MLPCertificateEnds": (
        {"mlp_certificate_expiry_timestamp_seconds": "1200000x200"},
        {"mlp_certificate_expiry_timestamp_seconds": "1300000x200"},
    ),
    "MLPBackupOld": (
        {"mlp_backup_last_timestamp_seconds": "-700000x200"},
        {"mlp_backup_last_timestamp_seconds": "-600000x200"},
    ),
    "MLPPointsLag": ({"mlp_points_lag_messages": "20000x200"}, {"mlp_points_lag_messages": "100x200"}),
    "MLPNotificationsFail": (
        {'alertmanager_notifications_failed_total{integration="email"}': "0+1x200"},
        {'alertmanager_notifications_failed_total{integration="email"}': "7x200"},
    ),
    "MLPAuditUnshipped": (
        {'mlp_audit_unshipped_age_seconds{receiver="syslog"}': "1000x200"},
        {'mlp_audit_unshipped_age_seconds{receiver="syslog"}': "800x200"},
    ),
    "MLPNoticesBehind": ({"mlp_notices_oldest_age_seconds": "95000x200"}, {"mlp_notices_oldest_age_seconds": "80000x200"}),
}  # fmt: skip
"""For each alert series, one value a minute, with which it fires, and others with which it does not."""
FEW_FAILED: Series = ended("red", "0 0 2x200", "0 0 7x200")
"""Series of the first jobs of a new hub: a share of 22% failed, but of nine only."""
CORES_OF_A_CLUSTER: Series = {
    _CORES % "n1": "3.5x200", _CAPACITY % "n1": "4x200",
    _CORES % "n2": "3x200", _CAPACITY % "n2": "4x200",
}  # fmt: skip
"""Series of two nodes of a cluster, of which the processors of `n1` alone are busy."""


def samples_at(series: Series, minute: int) -> dict[str, Vector]:
    """Return the values of all series at a minute, by metric and labels; a series that is over has none."""
    found: dict[str, dict[LabelSet, float]] = {}
    for written, values in series.items():
        name, _, labels = written.partition("{")
        pairs = tuple(sorted(re.findall(r'(\w+)="([^"]*)"', labels)))
        expanded = _expanded(values)
        if minute < len(expanded):
            found.setdefault(name, {})[pairs] = expanded[minute]
    return dict(found)


def _expanded(values: str) -> list[float]:
    """Return the values of promtool's notation: `0+5x3` counts up three times, `1x3` stays for three more."""
    found: list[float] = []
    for part in values.split():
        written, _, times = part.partition("x")
        start, _, step = (
            written.partition("+") if not re.fullmatch(r"[0-9.]+e\+?[0-9]+", written) else (written, "", "")
        )
        found += [float(start) + i * float(step or 0) for i in range(int(times or 0) + 1)]
    return found

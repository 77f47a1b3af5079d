"""Settings that say what is kept, for how long, and how much of the disk it may take; a part of `Settings`."""

# ruff: noqa: RUF009 - `setting` makes a dataclass field
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mlp_hub.settings.values import SettingsError, address, check_http, setting


@dataclass(frozen=True, kw_only=True)
class KeepingSettings:
    """Settings of records and of the disk."""

    __slots__ = ()  # `Settings` makes them: of two bases that have some no class can be made

    keep_jobs_days: float = setting(
        90.0,
        "Jobs are deleted, with their directories, so long after they ended; 0: never.",
        kind="float",
        unit="days",
        low=0,
        high=36_500,
        limit="jobs",
    )
    keep_jobs_most: int = setting(
        10_000,
        "Jobs that have ended are kept of one user; those that ended first are deleted first. 0: any number.",
        kind="int",
        unit="jobs",
        low=0,
        limit="jobs",
    )
    keep_jobs_mib: int = setting(
        1024,
        "So much the database keeps of one user's jobs that have ended (programs, timelines, metrics); those that ended first "
        "are deleted first, the last one never. 0: any amount.",
        kind="int",
        unit="MiB",
        low=0,
        limit="jobs",
    )
    keep_audit_days: float = setting(
        730.0,
        "Entries of the audit log are forgotten after so long; 0: never.",
        kind="float",
        unit="days",
        low=0,
        high=36_500,
    )
    keep_decisions_days: float = setting(
        14.0,
        "Reasons of scheduling decisions are deleted after this time, and with their job at the latest.",
        kind="float",
        unit="days",
        low=0.01,
        high=36_500,
        limit="jobs",
    )
    audit_heads: Path | None = setting(
        None,
        "File that heads of the audit log's chain are appended to every 15 minutes, so that a removed end of the log is noticed; "
        "unset: `audit-heads.jsonl` in the state directory.",
        kind="path",
    )
    audit_syslog: str = setting(
        "",
        "Syslog that the heads are also sent to: the path of its socket, as /dev/log, or HOST:PORT (UDP); empty: none.",
        kind="str",
    )
    audit_webhook: str = setting(
        "",
        "Address that the heads are also posted to as JSON, as https://siem.example.org/heads; a private one needs "
        "`notice_private`. Empty: none.",
        kind="str",
    )
    audit_ship_syslog: str = setting(
        "",
        "Syslog that each entry of the audit log is shipped to (RFC 5424): tls://HOST:PORT, tcp://HOST:PORT, udp://HOST:PORT, or the "
        "path of a socket. Only tls and tcp confirm that an entry arrived. Empty: none.",
        kind="str",
    )
    audit_ship_ca: Path | None = setting(
        None,
        "Certificates that sign the one of a syslog at tls://; unset: those of the machine.",
        kind="path",
    )
    audit_ship_certificate: Path | None = setting(
        None,
        "Certificate that the hub shows to a syslog at tls://; unset: none.",
        kind="path",
    )
    audit_ship_key: Path | None = setting(
        None,
        "Key of that certificate; unset: it is in the same file.",
        kind="path",
    )
    audit_ship_file: Path | None = setting(
        None,
        "File that each entry of the audit log is appended to, as a line of JSON; unset: none.",
        kind="path",
    )
    disk_floor: int | None = setting(
        None,
        "Below so much free space no job is started, below half of it no notebook server, and who writes fastest is "
        "stopped; unset: a twentieth of the file system, from 1 to 10 GiB, a fifth of it at most. 0: never.",
        kind="int",
        unit="MiB",
        low=0,
    )
    job_disk_max: int | None = setting(
        None,
        "So much a job may hold in its directory, with its logs and metrics; unset: a fifth of the file system. 0: any amount.",
        kind="int",
        unit="MiB",
        low=0,
        limit="jobs",
    )
    home_disk_max: int | None = setting(
        None,
        "So much a home may hold; unset: a fifth of the file system. 0: any amount.",
        kind="int",
        unit="MiB",
        low=0,
        limit="notebooks",
    )
    cull_idle_s: int = setting(
        0,
        "A notebook server that nobody used for so long is stopped; what is saved stays, what runs in it is lost, jobs go on. Use is "
        "told every five minutes, so that less than 900 stops servers that are used. 0: never.",
        kind="int",
        unit="s",
        low=0,
        high=31_536_000,
    )
    cull_max_age_s: int = setting(
        0,
        "A notebook server that runs for so long is stopped, whether it is used or not. 0: never.",
        kind="int",
        unit="s",
        low=0,
        high=31_536_000,
    )
    charge_files: bool = setting(
        True,
        "Homes and jobs' directories take of their tenants' storage, as datasets and models do.",
        kind="bool",
    )
    upload_silent_hours: float = setting(
        24.0,
        "A dataset that is being created is in error once nothing was heard of its upload for so long; what came of it is kept. "
        "0: never.",
        kind="float",
        unit="hours",
        low=0,
        high=8760,
        limit="data",
    )
    data_endpoints: tuple[str, ...] = setting(
        (),
        "Object stores that datasets may be copied from though they are at private addresses, as HOST or HOST:PORT; all others "
        "must be at addresses of the internet.",
        kind="list",
    )
    metric_spool_max: int = setting(
        256,
        "So much the processes of a job's attempt keep of what they reported in its directory; what would be more is dropped.",
        kind="int",
        unit="MiB",
        low=1,
        limit="runs",
    )

    @property
    def disk_limits(self) -> tuple[int | None, int | None, int | None]:
        """Limits of the disk in bytes: the free floor, the most of a job, and the most of a home.

        None is a share of the file system.
        """
        floor, job, home = (
            None if given is None else given * 2**20
            for given in (self.disk_floor, self.job_disk_max, self.home_disk_max)
        )
        return floor, job, home

    @property
    def audit_receiver(self) -> tuple[str, str, int] | None:
        """Transport, host (of `unix`: the path) and port of the syslog that entries go to. Raises `SettingsError`."""
        given = self.audit_ship_syslog
        if given.startswith("/"):
            return "unix", given, 0
        transport, found, place = given.partition("://")
        if found and transport in ("tls", "tcp", "udp") and (at := address("MLP_AUDIT_SHIP_SYSLOG", place)):
            return transport, *at
        if given:
            raise SettingsError(
                f"MLP_AUDIT_SHIP_SYSLOG is {given!r}; write tls://HOST:PORT, tcp://HOST:PORT, udp://HOST:PORT, or the path of a socket"
            )
        return None

    def check_audit(self) -> None:
        """Raise `SettingsError` where heads or entries of the audit log could never be sent."""
        receiver = self.audit_receiver
        files = {
            "CA": self.audit_ship_ca,
            "CERTIFICATE": self.audit_ship_certificate,
            "KEY": self.audit_ship_key,
        }
        for name, path in files.items():
            if path is not None and (receiver is None or receiver[0] != "tls"):
                raise SettingsError(
                    f"MLP_AUDIT_SHIP_{name} is set, but MLP_AUDIT_SHIP_SYSLOG is not at tls://; unset one of them"
                )
        if self.audit_ship_key is not None and self.audit_ship_certificate is None:
            raise SettingsError("MLP_AUDIT_SHIP_KEY needs MLP_AUDIT_SHIP_CERTIFICATE; set both")
        if self.audit_syslog and not self.audit_syslog.startswith("/"):
            address("MLP_AUDIT_SYSLOG", self.audit_syslog)
        check_http("MLP_AUDIT_WEBHOOK", self.audit_webhook)

"""How much of a rank's own report of its use is believed, beside the measures of the cluster. Pure.

A job's program can write the report, and look busy by it. So where the cluster measures the rank's pod, that counts. Memory counts
as reported, up to the measure: the cluster's measure has cached files too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mlp_hub.executors.kubernetes.records import RankUse


@dataclass(frozen=True, slots=True)
class PodUse:
    """Use of a rank's pods as the cluster measured it: cores and MiB, now, and over all looks at them.

    The values of now are None if the last look is too old.
    """

    cpu: float | None
    ram: int | None
    cpu_mean: float
    cpu_peak: float
    ram_mean: int
    ram_peak: int


@dataclass(frozen=True, slots=True)
class BelievedUse:
    """Use of a rank. `reported`: a part of it is its own report alone. The other two say it of its mean cores and its mean memory."""

    use: RankUse
    reported: bool
    cores_reported: bool
    memory_reported: bool


def believed(own: RankUse, seen: PodUse | None) -> BelievedUse:
    """Return a rank's use, and which part of it is its own report.

    The most memory is as reported: it may have lasted for less than a look. If no look saw as much, that is its own report alone.
    Mean memory below the measure is its own report too.
    """
    if seen is None:
        return BelievedUse(own, own != RankUse(), own.cpu_mean is not None, own.ram_mean is not None)
    used = replace(
        own,
        cpu=seen.cpu if seen.cpu is not None else own.cpu,
        ram=_least(own.ram, seen.ram),
        cpu_mean=seen.cpu_mean,
        cpu_peak=seen.cpu_peak,
        ram_mean=_least(own.ram_mean, seen.ram_mean),
        ram_peak=seen.ram_peak if own.ram_peak is None else own.ram_peak,
    )
    unseen_now = seen.cpu is None and (own.cpu is not None or own.ram is not None)
    return BelievedUse(
        used,
        reported=unseen_now or (own.ram_peak or 0) > seen.ram_peak,
        cores_reported=False,
        memory_reported=own.ram_mean is not None and own.ram_mean < seen.ram_mean,
    )


def _least(own: int | None, seen: int | None) -> int | None:
    known = [value for value in (own, seen) if value is not None]
    return min(known, default=None)

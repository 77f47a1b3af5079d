"""GPUs that a running job holds and does not use: the countdown to the job's end. Pure.

Time is counted in seconds that passed while the GPUs were seen to do nothing, never by the wall clock: a clock that jumps ends no
job. A look that could not measure pauses the count, so a job that nobody measures is never ended.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mlp_hub.domain.workload.idle_policy import IdleWorkPolicy

LONG_S = 3600.0
"""Tuning: seconds without use from which on unused GPUs and servers are listed, and the alert MLPGpuIdle counts them."""
MOST_KEPT_S = 24 * 3600.0
"""Limit of jobs: seconds for which a job can be kept in all while its GPUs are not used; their use begins a new count."""
WORKS_GPU = 0.01
"""Given: the least that the driver measures of an engine, from 0 to 1: any work at all is work."""
WORKS_CORES = 0.05
"""Tuning: cores that a rank uses at least when it works, as it does while it loads data; a rank that waits uses a hundredth."""


@dataclass(frozen=True, slots=True)
class GpuIdle:
    """Countdown of a job that holds GPUs.

    `idle_s` is how long they were not used. `left_s` is the rest of the countdown, None without one. `kept_s` is how long the job
    is kept yet, and `kept_in_all` for how long it was kept in all since the GPUs were used last. All are seconds. `claims`: the
    job reports work that the cluster's measures do not show.
    """

    idle_s: float = 0.0
    left_s: float | None = None
    kept_s: float = 0.0
    kept_in_all: float = 0.0
    claims: bool = False

    def after(self, passed: float, works: bool | None, policy: IdleWorkPolicy | None) -> GpuIdle:
        """Return it `passed` seconds later. `works` says whether the job was seen to work in that time, None if nothing was measured.

        A countdown stops where the job works, where it is kept, and where the team has no policy. It pauses while nothing is measured.
        """
        kept = max(0.0, self.kept_s - passed)
        if works:
            return GpuIdle(kept_s=kept, kept_in_all=kept)
        now = replace(
            self, claims=False, kept_s=kept, idle_s=self.idle_s + (0.0 if works is None else passed)
        )
        if policy is None or kept > 0 or now.idle_s < policy.after_s:
            return replace(now, left_s=None)
        if works is None:
            return now
        left = float(policy.grace_s) if self.left_s is None else max(0.0, self.left_s - passed)
        return replace(now, left_s=left)

    def could_be_kept(self) -> float:
        """Return for how many seconds from now on it can be kept at most."""
        return max(0.0, MOST_KEPT_S - self.kept_in_all) + self.kept_s

    def keep(self, seconds: float) -> GpuIdle:
        """Return it kept for some seconds from now on, at most `could_be_kept`: its countdown stops."""
        more = max(0.0, seconds - self.kept_s)
        return replace(self, left_s=None, kept_s=seconds, kept_in_all=self.kept_in_all + more)


def works(
    gpu: float | None, cores: float | None, *, gpu_reported: bool = False, cores_reported: bool = False
) -> bool | None:
    """Return whether a job works: an engine of its GPUs, or a processor; None where that is not known.

    `gpu` is the most that any engine of its GPUs did, from 0 to 1, and `cores` the most that any of its ranks uses. A job can write
    a value that is only reported. So a report of work makes nothing known where the measured value shows no work.
    """
    by_gpu, by_cores = gpu is not None and gpu >= WORKS_GPU, cores is not None and cores >= WORKS_CORES
    if (by_gpu and not gpu_reported) or (by_cores and not cores_reported):
        return True
    if by_gpu or by_cores:
        measured = (gpu is not None and not gpu_reported) or (cores is not None and not cores_reported)
        return None if measured else True
    return None if gpu is None or cores is None else False


def claims_work(
    gpu: float | None, cores: float | None, *, gpu_reported: bool = False, cores_reported: bool = False
) -> bool:
    """Return whether a job reports work that the measured value does not show."""
    told = (gpu is not None and gpu >= WORKS_GPU) or (cores is not None and cores >= WORKS_CORES)
    return told and works(gpu, cores, gpu_reported=gpu_reported, cores_reported=cores_reported) is None

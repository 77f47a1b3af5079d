"""What a scenario may not exceed: its tenants' limits their quotas, its jobs what can be simulated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlp_hub.scheduler.simulate.errors import Faults
from mlp_hub.scheduler.simulate.fields import Fields, shown
from mlp_hub.scheduler.simulate.keys import MOST_JOBS, MOST_WORKERS_IN_ALL
from mlp_hub.scheduler.simulate.scenario import JobLine


def check_within_quota(f: Fields, name: str) -> None:
    """Note what a tenant lends or reserves of more than it has. Where it has no quota, it has what the nodes have."""
    quota = f.given.get("quota")
    if not isinstance(quota, Mapping):
        return
    for key, does in (("lending_limit", "lend"), ("reserved", "reserve")):
        limits = f.given.get(key)
        for d, value in limits.items() if isinstance(limits, Mapping) else ():
            own = quota.get(d)
            if own is None and isinstance(d, str) and d.startswith("gpu:"):
                own = quota.get("gpu")
            if _is_number(value) and _is_number(own) and value > own:
                what = f"is {shown(value)}, and the quota of tenant {name} is {shown(own)}"
                f.wrong(
                    f"{key}.{d}", f"{what}; it cannot {does} more than it has, so give {shown(own)} at most"
                )


def check_size(faults: Faults, lines: Sequence[JobLine]) -> None:
    """Note more jobs, or more workers of all jobs together, than can be simulated."""
    jobs = sum(line.count for line in lines)
    if jobs > MOST_JOBS:
        faults.add(
            "jobs", f"these lines make {jobs} jobs; the most is {MOST_JOBS}, so simulate a part of them"
        )
        return
    workers = sum(line.count * line.workers_max for line in lines)
    if workers > MOST_WORKERS_IN_ALL:
        widest = max(lines, key=lambda line: line.count * line.workers_max)
        faults.add(
            "jobs",
            f"these lines make {workers} workers, {widest.count * widest.workers_max} of them the line {widest.name}; "
            f"the most of all jobs together is {MOST_WORKERS_IN_ALL}, so simulate a part of them",
        )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)

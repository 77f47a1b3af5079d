"""Limits of a scenario: its tenants' limits within their quotas, its jobs within a simulation's bounds."""

from __future__ import annotations

from collections.abc import Sequence

from mlp_hub.simulate.errors import Faults
from mlp_hub.simulate.forms import MOST_JOBS, MOST_WORKERS_IN_ALL, TenantForm
from mlp_hub.simulate.mapping_reader import Part, shown
from mlp_hub.simulate.scenario import JobLine


def check_within_quota(part: Part[TenantForm]) -> None:
    """Note what a tenant lends or reserves of more than it has. Where it has no quota, it has what the nodes have."""
    form = part.form
    quota = form.quota or {}
    for key, does in (("lending_limit", "lend"), ("reserved", "reserve")):
        for d, value in (getattr(form, key) or {}).items():
            own = quota.get(d)
            if own is None and d.startswith("gpu:"):
                own = quota.get("gpu")
            if value is not None and own is not None and value > own:
                what = f"is {_plain(value)}, and the quota of tenant {form.name} is {_plain(own)}"
                part.wrong(
                    f"{key}.{d}", f"{what}; it cannot {does} more than it has, so give {_plain(own)} at most"
                )


def _plain(value: float) -> str:
    return shown(int(value) if value == int(value) else value)


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

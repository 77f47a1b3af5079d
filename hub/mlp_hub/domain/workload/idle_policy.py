"""A team's policies for work that is held and not used: the same for notebook servers and for jobs with GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class IdleKind(StrEnum):
    """Kind of work that a policy is for."""

    SERVER = "server"
    JOB = "job"


@dataclass(frozen=True, slots=True)
class IdleWorkPolicy:
    """Policy of a tenant for one kind of work: work that is not used for `after_s` seconds ends `grace_s` seconds later."""

    tenant: str
    after_s: int
    grace_s: int

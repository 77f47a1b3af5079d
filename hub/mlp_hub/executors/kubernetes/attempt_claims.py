"""Claims: an attempt's first and last object in the cluster, a ConfigMap that owns its other objects.

The process that creates it starts the attempt, and the objects that are deleted with it are the
attempt. All its data is in its labels and annotations. Anyone with read access to a namespace can
read them, so they contain no credentials: the files that pods read are in a Secret. Claims of older
hubs hold those files themselves, and their pods read them there.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from mlp_hub.domain.jobs import names as job_names
from mlp_hub.domain.jobs.job import Failure
from mlp_hub.domain.runtime.runtime import roles_of
from mlp_hub.executors.base import AttemptPhase, LaunchSpec
from mlp_hub.executors.workspace import JobRun
from mlp_hub.kubernetes import names
from mlp_hub.kubernetes.kinds import CONFIG_MAPS, Kind, Object, labels_of, name_of, namespace_of

ABOUT = "mlp-hub/about"
END = "mlp-hub/end"
CLAIM = "attempt"
"""Contract: component of the claims, by which they are found."""
_READABLE = 24
"""Given: characters of a job's name in that of its objects: operators append what their pods are, and 63 are allowed."""
_DIGITS = 10
"""Given: digits of a hash that keep attempts apart, of one hub and of all its tenants."""


@dataclass(frozen=True, slots=True)
class End:
    """How an attempt ends, decided for good; it has ended once nothing of it is alive."""

    phase: AttemptPhase
    at: float
    grace_s: float = 0.0
    failure: Failure | None = None

    def text(self) -> str:
        """Return it as it is stored."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def parse(cls, text: str) -> End:
        """Read what was stored."""
        return msgspec.json.decode(text.encode(), type=End)


@dataclass(frozen=True, slots=True)
class About:
    """Part of a `LaunchSpec` that is needed after the start."""

    attempt: str
    user: str
    job: str
    run: int
    roles: tuple[str, ...]
    nodes: tuple[str, ...]
    main: tuple[str, str, str]  # its kind: version, kind, plural
    success: tuple[int, ...] = (0,)
    ends_with: str | None = None
    has_ps: bool = False
    linger_s: float = 10.0
    time_limit: float | None = None
    grace_s: float = 30.0
    network: str = "none"
    at: float = 0.0
    group: str = ""  # name of the PodGroup that has its pods bound as a whole
    key: str = ""  # of older hubs: by which its pod and the gateway know each other
    listens: bool = False  # its pod answers the gateway, by a key that the hub derives

    @property
    def of_run(self) -> JobRun:
        """Run that it is an attempt of."""
        return JobRun(self.user, self.job, self.run)

    @property
    def kind(self) -> Kind:
        """Kind of its main object."""
        return Kind(*self.main)


@dataclass(frozen=True, slots=True)
class AttemptClaim:
    """A claim as the cluster has it."""

    name: str
    namespace: str
    uid: str
    about: About
    end: End | None = None

    @property
    def attempt(self) -> str:
        """Attempt that it is of."""
        return self.about.attempt

    @property
    def selector(self) -> str:
        """Selector of the attempt's pods."""
        return f"{names.ATTEMPT}={names.label_value(self.attempt)}"

    def ending(self, end: End) -> AttemptClaim:
        """Return it with this end."""
        return replace(self, end=end)


def object_name(spec: LaunchSpec) -> str:
    """Return the name of an attempt's objects: readable, the same at each try, and no other attempt's."""
    digest = hashlib.sha256(f"{spec.user}/{spec.attempt}".encode()).hexdigest()[:_DIGITS]
    readable = job_names.label_name(spec.job, 1)[:_READABLE].strip("-")
    return f"{readable if readable[0].isalpha() else 'j' + readable}-{digest}"


def about_of(spec: LaunchSpec, main: Kind, now: float, group: str = "") -> About:
    """Return the data of an attempt that is needed later."""
    row = spec.runtime
    return About(
        spec.attempt,
        spec.user,
        spec.job,
        spec.run,
        roles_of(row, spec.workers, spec.ps),
        spec.placement,
        (main.api_version, main.kind, main.plural),
        row.success,
        row.ends_with,
        bool(spec.ps),
        row.linger_s,
        spec.time_limit,
        spec.grace_s,
        spec.network,
        now,
        group,
        listens=spec.listens,
    )


def claim_object(about: About, main: Object, end: End | None = None) -> Object:
    """Describe the claim of an attempt that this main object runs, or of one that never ran."""
    made = CONFIG_MAPS.named(name_of(main), namespace_of(main))
    made["metadata"] |= {
        "labels": {**labels_of(main), names.COMPONENT: CLAIM},
        "annotations": {ABOUT: msgspec.json.encode(about).decode()}
        | ({END: end.text()} if end is not None else {}),
    }
    return made


def owned_by(claim: AttemptClaim) -> list[dict[str, Any]]:
    """Return the reference by which what is made for an attempt goes with its claim."""
    return [
        {
            "apiVersion": CONFIG_MAPS.api_version,
            "kind": CONFIG_MAPS.kind,
            "name": claim.name,
            "uid": claim.uid,
        }
    ]


def claim_of(found: Object) -> AttemptClaim | None:
    """Parse a claim; return None for another object, or one that is being deleted."""
    about = found["metadata"]
    said = about.get("annotations") or {}
    if labels_of(found).get(names.COMPONENT) != CLAIM or ABOUT not in said or about.get("deletionTimestamp"):
        return None
    try:
        end = End.parse(said[END]) if END in said else None
        decoded = msgspec.json.decode(said[ABOUT].encode(), type=About)
    except msgspec.DecodeError:
        return None  # somebody else's, who took our labels
    return AttemptClaim(name_of(found), namespace_of(found), about["uid"], decoded, end)

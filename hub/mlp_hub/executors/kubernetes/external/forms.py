"""Kinds of objects that people may bring, and the positions of the relevant fields in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlp_hub.kubernetes.kinds import JOBS, MPI_JOBS, PYTORCH_JOBS, TF_JOBS, Kind, Object


@dataclass(frozen=True, slots=True)
class ExternalForm:
    """A kind of them: the runtime that it counts as, and the field with its replicas by role; None: it has one template.

    `roles` are those that its operator knows: of others it makes no pods.
    """

    kind: Kind
    runtime: str
    replicas: str | None = None
    roles: tuple[str, ...] = ()

    def holds(self, suspend: bool) -> Object:
        """Return the fields of a patch that hold it, or let it run."""
        return {"suspend": suspend} if self.replicas is None else {"runPolicy": {"suspend": suspend}}

    def suspended(self, spec: Mapping[str, Any]) -> bool:
        """Whether it is held."""
        of = spec if self.replicas is None else spec.get("runPolicy") or {}
        return of.get("suspend") is True

    def parts(self, spec: Mapping[str, Any]) -> Sequence[ExternalPart]:
        """Return what it consists of: pods that are alike."""
        if self.replicas is None:
            most = spec.get("parallelism", 1)
            count = min(most, spec.get("completions") or most)
            return [ExternalPart("worker", count, spec["template"])]
        found = spec.get(self.replicas) or {}
        # whoever reads it has to bear an object that no policy looked at: one from another's namespace
        return [
            ExternalPart(role, each.get("replicas", 1), each.get("template") or {})
            for role, each in sorted(found.items())
        ]

    def patch(self, templates: Mapping[str, Object]) -> Object:
        """Return the fields of a patch that has these templates, by role."""
        if self.replicas is None:
            return {"template": templates["worker"]}
        return {self.replicas: {role: {"template": each} for role, each in templates.items()}}


@dataclass(frozen=True, slots=True)
class ExternalPart:
    """Pods of a job that are alike."""

    role: str
    count: int
    template: Object


FORMS: Mapping[str, ExternalForm] = {
    form.kind.kind: form
    for form in (
        ExternalForm(JOBS, "plain"),
        ExternalForm(MPI_JOBS, "mpi", "mpiReplicaSpecs", ("Launcher", "Worker")),
        ExternalForm(TF_JOBS, "tf", "tfReplicaSpecs", ("Chief", "Evaluator", "Master", "PS", "Worker")),
        ExternalForm(PYTORCH_JOBS, "torch", "pytorchReplicaSpecs", ("Master", "Worker")),
    )
}
"""Contract: the kinds by their names."""

"""Classes of priority: the order in which a node without memory evicts pods.

The cluster preempts nothing for them.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlp_hub.executors.kubernetes.installation import JOB, NOTEBOOK, Installation
from mlp_hub.executors.kubernetes.tenancy.objects.common_fields import Made, made
from mlp_hub.kubernetes.kinds import PRIORITY_CLASSES

VALUES = {NOTEBOOK: 1000, JOB: 100}
"""Contract: the classes; a person who types loses more than a job that starts again."""


def priority_classes(at: Installation) -> Sequence[Made]:
    """Return the classes."""
    return [
        made(
            PRIORITY_CLASSES,
            at,
            at.priority_class(of),
            value=value,
            preemptionPolicy="Never",
            globalDefault=False,
            description=f"Pods of MLP Hub's {of}s. Whom to preempt is the hub's to decide.",
        )
        for of, value in VALUES.items()
    ]

"""`mlp-hub pod probe`: tests of the cluster from a pod of the hub, as `helm test` runs them."""

from __future__ import annotations

from mlp_hub.cli.doctor.checks import OK
from mlp_hub.cli.doctor.cluster import cluster_of_pod
from mlp_hub.cli.doctor.doctor import show
from mlp_hub.settings import Settings


def probe(settings: Settings) -> int:
    """Print the findings; the exit status is 1 where one is not well, such as a network that enforces no policies."""
    found = cluster_of_pod(settings)
    show(found)
    return 0 if all(check.status == OK for check in found) else 1

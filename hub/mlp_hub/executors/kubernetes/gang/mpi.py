"""MPIJob: pods that reach each other by a secure shell; mpirun runs in the first, which computes too."""

from __future__ import annotations

from mlp_hub.executors.kubernetes.gang.made import Described
from mlp_hub.executors.kubernetes.gang.plan import plan
from mlp_hub.executors.kubernetes.gang.replicas import replicas, run_policy
from mlp_hub.executors.kubernetes.gang.shape import Outline, RankGroup
from mlp_hub.executors.kubernetes.rank.mpi import KEYS
from mlp_hub.kubernetes.kinds import MPI_JOBS


def make(shape: Outline) -> Described:
    """Describe it. All pods begin at once; the first waits for the others' shells, not for the cluster to say they are ready."""
    ranks = shape.spec.ranks
    hosts = (
        f"{shape.name}-launcher.{shape.name}",
        *(f"{shape.name}-worker-{number}.{shape.name}" for number in range(ranks - 1)),
    )
    policy = run_policy(shape)
    if shape.together:
        # read only by an operator that makes the group itself, which then counts its launcher among the pods
        policy["schedulingPolicy"] = {"minAvailable": ranks, "queue": shape.queue}
    # the operator numbers all pods itself, the launcher as 0: ranks count from there
    every = RankGroup(shape.roles[0], 0, ranks)
    spec = {
        "slotsPerWorker": 1,
        "runLauncherAsWorker": True,
        "launcherCreationPolicy": "AtStartup",
        "sshAuthMountPath": KEYS,
        "mpiImplementation": "OpenMPI",
        "runPolicy": policy,
        "mpiReplicaSpecs": {
            "Launcher": replicas(shape, every, 1),
            "Worker": replicas(shape, every, ranks - 1),
        },
    }
    return Described(shape.object(MPI_JOBS, spec=spec), plan(shape, "mpi", hosts, waits=False))

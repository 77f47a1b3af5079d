"""Work of a pod, by its plan or by a word from MPI or a launcher.

The start of a job waits for this module, so it imports only the parts that its way needs.
"""

from __future__ import annotations

from typing import Any

from mlp_hub.executors.kubernetes.rank import peers, told


def main(words: list[str]) -> int:
    """Do it; return the exit status."""
    plan = told.read()
    if plan["mode"] == "mpi":
        return by_mpi(plan, words)
    if plan["mode"] == "launcher":
        return by_launcher(plan, words)
    return alone(told.OwnPlan(plan, told.own_rank()))


def by_mpi(plan: dict[str, Any], words: list[str]) -> int:
    """Be a pod of an MPI job, or the rank that mpirun starts there."""
    from mlp_hub.executors.kubernetes.rank import mpi  # noqa: PLC0415 - see above

    if words == ["rank"]:
        return mpi.rank(plan)
    own = told.OwnPlan(plan, told.own_rank())
    return mpi.launcher(own) if own.rank == 0 else mpi.worker(own)


def by_launcher(plan: dict[str, Any], words: list[str]) -> int:
    """Run a pod of a gang with a special launcher: its rank, or the process that the launcher starts for it."""
    from mlp_hub.executors.kubernetes.rank import launch  # noqa: PLC0415 - see above

    if words == ["rank"]:
        return launch.stub(plan)
    own = told.OwnPlan(plan, told.own_rank())
    return launch.launcher(own) if own.rank == 0 and words != ["agent"] else launch.agent(own)


def alone(own: told.OwnPlan) -> int:
    """Run this pod's rank; as the leader's pod, end once the others have, or their time is over."""
    from mlp_hub.executors.kubernetes.rank.supervise import SupervisedRank  # noqa: PLC0415 - see above

    rank = SupervisedRank(own)
    if not rank.open():
        return 127
    argv, env = own.argv(), own.env()
    peers.resolve(peers.named(own, argv, env), lambda: rank.asked)
    status = rank.run(argv, env)
    if status == 0 and own.plan["leader"] == own.rank:
        peers.linger(own, float(own.plan["linger_s"]), lambda: rank.asked)
    return status

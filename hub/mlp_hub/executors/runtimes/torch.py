"""Runtime `torch`: torchrun starts the ranks; it needs torch in the job's environment."""

from __future__ import annotations

from mlp_hub.executors.runtimes.base import Shape, Start, worker_roles
from mlp_hub.executors.sandbox.spec import RankPlan

PORT = 29500


def build(shape: Shape) -> Start:
    """Have torchrun start every rank through our starter; a job without torch was refused before."""
    roles = worker_roles(shape)
    launch = (
        shape.python, "-m", "torch.distributed.run", "--nnodes=1", f"--nproc-per-node={shape.workers}",
        "--master-addr=127.0.0.1", f"--master-port={PORT}", "--max-restarts=0", "--no-python",
    )  # fmt: skip
    return Start(
        (*launch, *shape.starter, "rank"), RankPlan("launcher", roles, shape.program, rank_env="RANK")
    )

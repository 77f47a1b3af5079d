"""Words of Slurm, MPI and shells that people type, and their names here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mlp.language import say

FLAGS: Mapping[str, str] = {
    "--account": "--tenant NAME",
    "-A": "--tenant NAME",
    "--chdir": "--workdir DIR",
    "-D": "--workdir DIR",
    "--constraint": "--gpu-kind KIND",
    "--cpus": "--cpu 2",
    "--cpus-per-task": "--cpu 2",
    "-c": "--cpu 2",
    "--export": "--env NAME=VALUE",
    "--gpus": "--gpu 1",
    "--gpus-per-task": "--gpu 1",
    "--gres": "--gpu 1",
    "--job-name": "--name NAME",
    "-J": "--name NAME",
    "--mem": "--ram 4G",
    "--mem-per-cpu": "--ram 4G",
    "--memory": "--ram 4G",
    "--mpi": "--runtime mpi",
    "--nodes": "--workers 4",
    "-N": "--workers 4",
    "-np": "--workers 4",
    "--np": "--workers 4",
    "--nproc-per-node": "--workers 4",
    "--ntasks": "--workers 4",
    "--qos": "--priority high",
    "--requeue": "--retries 3",
    "--test-only": "--dry-run",
    "--time": "--time-limit 30m",
}
"""Options of other systems, by their equivalents here."""
SENTENCES: Mapping[str, Callable[[], str]] = {
    "--dependency": lambda: say(
        "Jobs do not wait for each other: submit the first with --wait, then the next, for example {example}",
        example="mlp submit a.py --wait && mlp submit b.py",
    ),
    "--image": lambda: say(
        "A job takes an environment: {example}",
        example="mlp env create NAME --image IMAGE, --env-name NAME",
    ),
    "--output": lambda: say("The hub keeps the output of each rank: {example}", example="mlp logs NAME"),
    "--partition": lambda: say(
        "The hub has no partitions: it chooses nodes by --cpu, --gpu, --gpu-kind and --ram"
    ),
}
"""Options elsewhere that have no counterpart."""
_SHORT = {"-d": "--dependency", "-o": "--output", "--error": "--output", "-p": "--partition", "-q": "--qos"}
VERBS: Mapping[str, tuple[str, ...]] = {
    "history": ("jobs", "runs"),
    "kill": ("cancel",),
    "list": ("jobs",),
    "ls": ("jobs",),
    "nodes": ("quota", "offer"),
    "ps": ("jobs",),
    "qdel": ("cancel",),
    "qstat": ("jobs",),
    "qsub": ("submit",),
    "queue": ("jobs",),
    "run": ("submit",),
    "sacct": ("jobs", "runs"),
    "sattach": ("watch",),
    "sbatch": ("submit",),
    "scancel": ("cancel",),
    "seff": ("job",),
    "show": ("job",),
    "sinfo": ("quota", "offer"),
    "squeue": ("jobs",),
    "srun": ("submit",),
    "status": ("jobs", "job"),
    "stop": ("cancel",),
    "tail": ("logs",),
    "top": ("jobs", "quota"),
}
"""Verbs elsewhere, by the verbs here."""


def option_hint(flag: str, known: Mapping[str, object]) -> str:
    """Say what an option from elsewhere is here; empty where nothing is known of it, or the verb has none of that."""
    flag = _SHORT.get(flag, flag)
    if "--env-name" in known and flag in SENTENCES:
        return SENTENCES[flag]()
    here = FLAGS.get(flag, "")
    return say("Use {option} instead.", option=here) if here.partition(" ")[0] in known else ""


def verb_hint(word: str, surface: str, known: Mapping[str, object]) -> str:
    """Say which verbs do what a word from elsewhere means; empty where nothing is known of it."""
    here = [f"{surface} {verb}" for verb in VERBS.get(word, ()) if verb in known]
    return say("Use {commands} instead.", commands=say(" or ").join(here)) if here else ""

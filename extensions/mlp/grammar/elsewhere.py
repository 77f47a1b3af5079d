"""Words of Slurm, MPI and shells that people type, and their names here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from mlp.language import say
from mlp.rendering.words import sentences

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
    "--nproc_per_node": "--workers 4",
    "--ntasks": "--workers 4",
    "--qos": "--priority high",
    "--requeue": "--retries 3",
    "--test-only": "--dry-run",
    "--time": "--time-limit 30m",
}
"""Options of other systems, by their equivalents here."""
SENTENCES: Mapping[str, Callable[[], str]] = {
    "-m": lambda: _module("python -m PACKAGE.MODULE", "mlp submit"),
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
LAUNCHERS: Mapping[str, str] = {
    "accelerate": "torch",
    "deepspeed": "torch",
    "horovodrun": "mpi",
    "mpiexec": "mpi",
    "mpirun": "mpi",
    "srun": "mpi",
    "torchrun": "torch",
}
"""Programs that start ranks, by the runtime that does it here."""
_INTERPRETER = re.compile(r"(?:/.*/)?(?:python[\d.]*|bash|sh)")
_PROGRAM = re.compile(r"[^-].*\.(?:py|sh|ipynb)")
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


def program_hint(words: Sequence[str], line: str) -> str:
    """Say how to submit words that are a command, such as `python train.py`; empty where the first word starts no program."""
    words = [part for word in words for part in word.split()]
    first = words[0] if words else ""
    runtime = LAUNCHERS.get(first, "")
    if not runtime and not _INTERPRETER.fullmatch(first):
        return ""
    script = next((word for word in words[1:] if _PROGRAM.fullmatch(word)), "")
    if not script and "-m" in words[1:-1]:
        return _module(" ".join(words[: words.index("-m") + 2]), line)
    right = f"{line} {script or 'train.py'}" + (f" --runtime {runtime} --workers N" if runtime else "")
    said = (
        say(
            "the hub starts the ranks: write the script without {word}, as in {line}.", word=first, line=right
        )
        if runtime
        else say("write the script without {word}, as in {line}.", word=first, line=right)
    )
    return sentences(said, say("Arguments of the script go after --"))


def _module(command: str, line: str) -> str:
    """Say how a module of Python is run, for which a job has no option."""
    return say(
        "A job runs a file: write {command} into a file such as run.sh, and submit that, as in {line}",
        command=command,
        line=f"{line} run.sh --workdir DIR",
    )

"""Where a program finds datasets: below `/data` in a job that named them, its user's own in a notebook."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from mlp.errors import UsageError
from mlp.language import say


def data_path(name: str, env: Mapping[str, str] = os.environ) -> Path:
    """Return the directory of a dataset: `NAME`, or `USER/NAME` of another member's.

    In a job it is one that the job was submitted with (`--data NAME`), read-only. In a notebook it is one of your own. Raises
    `UsageError` where there is none.
    """
    if "MLP_JOB" in env:
        return _of_job(name, env)
    top = env.get("MLP_DATA")
    if not top:
        raise UsageError(
            say(
                "datasets are not available here; they are in notebooks of the hub, and in jobs that were submitted with --data NAME"
            )
        )
    own = env.get("JUPYTERHUB_USER", "")
    short = name.removeprefix(f"{own}/") if own else name
    path = Path(top) / short
    if not short or "/" in short or short.startswith(".") or not path.is_dir():
        raise UsageError(
            say(
                "dataset {name} is not available here; a notebook has your own datasets, and others' are in jobs that were submitted with --data {name}",
                name=name,
            )
        )
    return path


def _of_job(name: str, env: Mapping[str, str]) -> Path:
    names = [each for each in env.get("MLP_DATASETS", "").split(":") if each]
    found = dict(zip(names, env.get("MLP_DATA_PATHS", "").split(":"), strict=False))
    short = name.removeprefix(f"{env.get('MLP_USER', '')}/")
    if short not in found:
        raise UsageError(
            say(
                "the job has no dataset {name}, but {names}; submit it with --data {name}",
                name=name,
                names=", ".join(found) or say("none"),
            )
        )
    return Path(found[short])

"""Files that a gang's pods read: their identity, their work, and the program that does it.

The job's own files are in its directory.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mlp_hub
from mlp_hub.executors.base import CannotStart, LaunchSpec
from mlp_hub.executors.kubernetes.gang.shape import Outline
from mlp_hub.executors.places import home_mount
from mlp_language.message import msg

MOUNT = "/run/mlp"
"""Contract: where pods see these files."""
START = f"{MOUNT}/start.py"
USERS = "passwd"
MOST = 1_000_000
"""Given: bytes of one Secret; the API refuses more than 1 MiB, names and all."""
_ROOT = Path(mlp_hub.__file__).parent
_TRAVELS = (
    *sorted(
        path.relative_to(_ROOT).as_posix()
        for path in (_ROOT / "executors" / "kubernetes" / "rank").glob("*.py")
        if path.name not in ("__init__.py", "start.py")
    ),
    "durable.py",
    *(
        f"sandbox/shim/{name}.py"
        for name in (
            "asking",
            "diagnosis/blame",
            "programs/by_mpi4py",
            "programs/by_python",
            "files",
            "logs/writer",
            "logs/losses",
            "diagnosis/outcome",
            "diagnosis/exception_line",
            "diagnosis/messages",
            "logs/screen",
            "logs/segments",
            "usage",
        )
    ),
)
"""Modules that run in pods, by their path in `mlp_hub`: standard library only, and each imports none but these."""


def paths() -> Mapping[str, str]:
    """Return where below `MOUNT` each of the files lies, by its key."""
    found = {"plan.json": "plan.json", USERS: USERS, "start.py": "start.py"}
    return found | {f"mlp_hub.{path.replace('/', '.')}": f"mlp_hub/{path}" for path in _TRAVELS}


def files(shape: Outline, plan: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the contents of the files by their keys; raises `CannotStart` where they come to more than a cluster takes."""
    spec = shape.spec
    found = {
        "plan.json": json.dumps(plan, ensure_ascii=False, separators=(",", ":")),
        USERS: passwd(spec, shape.uid),
        **_program(),
    }
    size = sum(len(key) + len(text.encode()) for key, text in found.items())
    if size > MOST:
        raise CannotStart(
            msg(
                "the arguments and variables of its ranks have {size} bytes, and the limit of a cluster is {most}: put long ones into a file in the home directory, or ask for fewer ranks",
                size=f"{size:,}",
                most=f"{MOST:,}",
            )
        )
    return found


def passwd(spec: LaunchSpec, uid: int) -> str:
    """Return the users that a pod knows: its own has to be one for ssh."""
    own = f"{home_mount(spec.user).rpartition('/')[2]}:x:{uid}:{uid}::{home_mount(spec.user)}:/bin/sh\n"
    return (
        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
        "sshd:x:65533:65534::/run/sshd:/bin/false\n" + own
    )


@functools.cache
def _program() -> Mapping[str, str]:
    found = {f"mlp_hub.{path.replace('/', '.')}": (_ROOT / path).read_text() for path in _TRAVELS}
    found["start.py"] = (_ROOT / "executors" / "kubernetes" / "rank" / "start.py").read_text()
    return found

"""Directories of a user and a run, made before ranks see them."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from mlp_hub.executors.base import Code, LaunchSpec
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.executors.workspace import StoredPlace
from mlp_hub.safe_path import DirHandle
from mlp_hub.sandbox import ensure_home, ensure_stored

OWN = ("ckpt", "metrics")  # the program's to write
GIVEN = ("code", "log")  # written from outside only


def make_directories(
    spec: LaunchSpec, directories: Directories, *, root: bool, ranks_log: bool = False
) -> None:
    """Make the user's home where it is missing, and the job's directory so that its program can neither replace nor redirect what we write there.

    As root: the directory is ours and sticky, its user may make files in it; `log` and `code` are ours, or with `ranks_log`
    the log is the user's, whose ranks write it themselves.
    """
    with directories.using(spec.of_run, write=True):
        _make_directories(spec, directories, root=root, ranks_log=ranks_log)


def _make_directories(spec: LaunchSpec, directories: Directories, *, root: bool, ranks_log: bool) -> None:
    # a user may have jobs before the first notebook server
    home, job = Path(directories.home(spec.user)), directories.workspace(spec.of_run)
    ensure_home(home.parent, home.name, spec.uid if root else None)
    os.makedirs(job, exist_ok=True)  # noqa: PTH103 - all above the job's directory is ours
    for mount in spec.data:
        ensure_stored(directories.roots.path(mount.of.tenant), *directories.below(mount.of))
    own = (*OWN, "log") if ranks_log else OWN
    with DirHandle.at(job) as workspace:
        if root and spec.uid is not None:
            workspace.give(0, spec.uid, 0o1770)
        for name in (*OWN, *GIVEN):
            with workspace.inside(name, make=0o750) as part:
                if root and spec.uid is not None:
                    part.give(spec.uid if name in own else 0, spec.uid, 0o750)
                if name == "code" and isinstance(spec.program, Code):
                    _write_code(part, spec.program.text)


def model_directory(spec: LaunchSpec, directories: Directories) -> Path:
    """Return the directory of the model that the attempt sees; its user's, whatever it is called."""
    return directories.stored(StoredPlace("model", spec.user, spec.model or "", spec.tenant))


def show_model(spec: LaunchSpec, directories: Directories, *, root: bool) -> None:
    """Let the ranks of an attempt enter the directory of its model, which they can read and nothing else."""
    if root and spec.uid is not None:
        with DirHandle.at(model_directory(spec, directories)) as model:
            model.give(0, spec.uid, 0o750)


def _write_code(directory: DirHandle, code: str) -> None:
    new = "main.py.new"
    with contextlib.suppress(FileNotFoundError):
        directory.remove(new)
    with directory.create(new, 0o644) as file:
        file.write(code.encode())
    directory.move(new, directory, "main.py")

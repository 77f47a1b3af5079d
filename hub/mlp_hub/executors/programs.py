"""A job's program and environment as its ranks see them, whichever executor starts them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import PurePosixPath

from mlp_hub.domain.resources import MILLI, QUIET, thread_variables
from mlp_hub.domain.runtime.runtime import NOTEBOOK, NOTEBOOK_TEXT
from mlp_hub.executors import rank_commands, scripts
from mlp_hub.executors.base import CannotStart, Code, LaunchSpec
from mlp_hub.executors.places import home_mount
from mlp_hub.executors.workspace import WORKSPACE
from mlp_hub.safe_path import PathKind, kind_of, peek
from mlp_language.message import msg


def program(spec: LaunchSpec, home: str, python: str, code: str) -> rank_commands.Command:
    """Return how the job's program is run, its text lying at `code`; raises `CannotStart` when its file does not exist."""
    if isinstance(spec.program, Code):
        # a notebook's first process has the kernel save
        by_itself = _is_notebook(spec.program)
        return rank_commands.Command((python, "-u"), code, spec.args, asks_all=not by_itself)
    given, mount = spec.program.path, home_mount(spec.user)
    entry = given.removeprefix("~/").removeprefix(mount + "/")
    parts = PurePosixPath(entry).parts
    if entry.startswith("/") or ".." in parts:
        raise CannotStart(
            msg("{path} is not in the home directory; give a path in it, such as train.py", path=given)
        )
    found = peek(home, entry, mount, scripts.HEAD)
    if found.kind is PathKind.MISSING:
        raise CannotStart(msg("the home directory has no file {path}", path=given))
    if found.kind is PathKind.DIRECTORY:
        raise CannotStart(msg("{path} is a directory; name the program in it", path=given))
    if wrong := scripts.unfit(entry, found):  # it may be another one than when the job was submitted
        raise CannotStart(wrong)
    # what lies outside, behind a link, is not looked at: inside the sandbox it is there or not
    path = f"{mount}/{entry}"
    if entry.endswith(scripts.PYTHON):
        return rank_commands.Command((python, "-u"), path, spec.args)
    if entry.endswith(scripts.SHELL):
        return rank_commands.Command(scripts.interpreter(found.head), path, spec.args)
    if entry.endswith(NOTEBOOK):
        by = (python, "-u", "-m", "mlp.notebook_run")
        return rank_commands.Command(by, path, spec.args, asks_all=False)
    return rank_commands.Command((), path, spec.args)


def working_directory(spec: LaunchSpec, home: str) -> str:
    """Return the directory inside in which the program starts; raises `CannotStart` where it is not there or leaves the home."""
    mount = home_mount(spec.user)
    if spec.workdir is None:
        return mount
    parts = PurePosixPath(spec.workdir).parts
    outside = spec.workdir.startswith("/") or ".." in parts
    kind = PathKind.OUTSIDE if outside else kind_of(home, spec.workdir, mount)
    if kind is PathKind.OUTSIDE:
        raise CannotStart(
            msg(
                "the program should start in {path}, which is not in the home directory; submit the job again with another --workdir, "
                "such as project/src",
                path=spec.workdir,
            )
        )
    # it was there when the job was submitted; what cannot be looked at is tried
    if kind not in (PathKind.DIRECTORY, PathKind.UNKNOWN):
        raise CannotStart(
            msg(
                "the program should start in {path}, and the home directory has no such directory any more; create it again, or submit "
                "the job with another --workdir",
                path=spec.workdir,
            )
        )
    return f"{mount}/{spec.workdir}"


def environment(spec: LaunchSpec, python: str, extra: Mapping[str, str]) -> dict[str, str]:
    """Return the whole environment of the ranks; the user's and the contract's variables come last."""
    home = home_mount(spec.user)
    return {
        "HOME": home,
        "USER": spec.user,
        "LOGNAME": spec.user,
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "PATH": f"{os.path.dirname(python)}:{home}/.local/bin:/usr/local/bin:/usr/bin:/bin",  # noqa: PTH120
        "TMPDIR": "/tmp",  # noqa: S108 - the sandbox's own
        "XDG_RUNTIME_DIR": "/tmp",  # noqa: S108
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",  # a crash in compiled code leaves Python's stack in the log, not nothing
        **QUIET,
        **thread_variables(spec.per_worker.cpu / MILLI),
        **_beside(spec, home),
        "MLP_WORKSPACE": WORKSPACE,
        **({} if spec.workdir is None else {"MLP_WORKDIR": f"{home}/{spec.workdir}"}),
        "MLP_RUNTIME": spec.runtime.name,
        **extra,
        **spec.env,
    }


def _beside(spec: LaunchSpec, home: str) -> dict[str, str]:
    """Return what lets a cell import the modules of the directory in which it starts; a script finds those beside it anyway.

    The text of an app is the platform's own: no module of the user's takes the place of one of the platform's there.
    """
    if not isinstance(spec.program, Code) or _is_notebook(spec.program) or spec.listens:
        return {}
    return {"PYTHONPATH": home if spec.workdir is None else f"{home}/{spec.workdir}"}


def _is_notebook(code: Code) -> bool:
    """Whether the text is that of a notebook, whose kernel imports from where it starts."""
    return code.text.startswith(NOTEBOOK_TEXT)

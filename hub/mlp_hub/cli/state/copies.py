"""Conversion of a copied state directory to a separate hub, without a change to the original."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from mlp_hub.cli.errors import CommandFailed
from mlp_hub.cli.state import identity
from mlp_hub.settings import Settings
from mlp_language.render import say


def settle(settings: Settings) -> str | None:
    """Ensure that the directory has its own identity; return a message where it is a copy.

    Raises `CommandFailed` where something that the directory cannot know runs on it. Then nothing is
    changed.
    """
    if identity.own(settings) is not None:
        return None
    lock = settings.home / "supervisor.lock"
    holder = holder_of(lock)
    if holder is not None:
        raise CommandFailed(
            say(
                "A supervisor{holder} works on {home}, but this directory has no record of it.",
                holder=holder,
                home=str(settings.home),
            ),
            say(
                "End it first; it holds {lock}. To stop a supervisor of an earlier version, use that version's `down`.",
                lock=str(lock),
            ),
        )
    source = identity.origin(settings)
    note = None if source is None else _disown(settings, source)
    identity.give(settings)
    return note


def holder_of(lock: Path) -> str | None:
    """Name the process that holds a supervisor's lock, as `, process 12,`; empty if unknown, None if nobody does."""
    try:
        fd = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = os.pread(fd, 32, 0).decode(errors="replace").strip()
        return f", process {pid}," if pid.isdigit() else ""
    else:
        return None
    finally:
        os.close(fd)


def _disown(settings: Settings, source: str) -> str:
    """Leave running work to the original; return a message about the work that is noted here as running."""
    from mlp_hub import sandbox  # noqa: PLC0415 - only for a copy

    run_dirs = [*settings.jobs_run_dir.glob("*/"), *settings.servers_run_dir.glob("*/*/")]
    phases = {run_dir: sandbox.inspect(str(run_dir)).phase for run_dir in run_dirs}
    ran = [run_dir for run_dir, phase in phases.items() if phase in ("starting", "running")]
    if ran and settings.database_url:
        raise CommandFailed(
            say(
                "{home} is a copy of {source}, where {count} jobs or notebook servers still run, and both have the "
                "same database.",
                home=str(settings.home),
                source=source,
                count=len(ran),
            ),
            say(
                "Stop those first: MLP_HOME={source} mlp-hub down --jobs stop. Or give the copy a copy of the database.",
                source=source,
            ),
        )
    jobs, servers = 0, 0
    for run_dir in run_dirs:
        if _make_foreign(str(run_dir)):
            jobs += run_dir.parent == settings.jobs_run_dir
            servers += run_dir.parent != settings.jobs_run_dir
    for folder in (settings.private_dir, settings.tenant_dir):
        for path in folder.iterdir():
            if not path.is_dir() or path.is_symlink():
                path.unlink()  # sockets, pid files and routes of the original
    return (
        f"{settings.home} is a copy of {source}: it is a hub of its own from now on, and what runs there is left alone\n"
        f"      of what ran when it was copied, {jobs} job(s) begin again here, as after a crash of the machine; "
        f"{servers} notebook server(s) are not running here"
    )


def _make_foreign(run_dir: str) -> bool:
    """Make a run directory one from before a boot: its numbers are nobody's here. Return whether it had not ended."""
    from mlp_hub.sandbox.shim import files  # noqa: PLC0415 - only for a copy

    noted = False
    for name in ("claim", "spec.json"):
        content = files.read_json_if_whole(run_dir, name)
        noted |= content is None and os.path.lexists(
            f"{run_dir}/{name}"
        )  # what cannot be read was begun, and is lost
        if content is not None:
            files.write_json(run_dir, name, {**content, "boot": ""}, durable=True)
            noted = True
    if not noted or os.path.lexists(f"{run_dir}/exit.json"):
        return False
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{run_dir}/state.json")  # noqa: PTH108 - a run directory's paths are strings
    return True

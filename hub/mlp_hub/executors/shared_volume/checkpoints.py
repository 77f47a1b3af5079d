"""Checkpoints of a run, as far as their age tells."""

from __future__ import annotations

from pathlib import Path

from mlp_hub.safe_path import DirHandle, shown_time

MOST_FILES = 2000
"""Limit of jobs: entries of a checkpoint directory in which the newest checkpoint is searched."""
DEEP = 3
"""Safety: levels of directories that are looked at, the checkpoint directory itself included: programs write what they like
there."""


def newest_checkpoint(workspace: Path) -> float | None:
    """Return when the newest file below the job's `ckpt` was written; None where there is none. Follows no links."""
    try:
        with DirHandle.at(workspace) as top:
            newest, _ = _newest("ckpt", top, DEEP, MOST_FILES)
    except OSError:
        return None
    return newest


def _newest(name: str, above: DirHandle, deep: int, left: int) -> tuple[float | None, int]:
    newest: float | None = None
    try:
        with above.inside(name) as directory, directory.entries() as entries:
            for entry in entries:
                if left <= 0:
                    break
                left -= 1
                written: float | None = None
                if entry.is_dir(follow_symlinks=False):
                    if deep > 1:
                        written, left = _newest(entry.name, directory, deep - 1, left)
                elif entry.is_file(follow_symlinks=False):
                    written = shown_time(entry.stat(follow_symlinks=False).st_mtime)
                if written is not None and (newest is None or written > newest):
                    newest = written
    except OSError:
        pass  # it goes away while it is looked at: what was seen counts
    return newest, left

"""The text of a script that is kept with its run: that of the submission, and of the start where its file was edited meanwhile."""

from __future__ import annotations

from dataclasses import replace

from mlp_hub.domain.errors import MLPError, Refused
from mlp_hub.domain.jobs.job import Job
from mlp_hub.executors.workspace import Home, Workspace
from mlp_hub.service.state.board import Board, Changes
from mlp_hub.service.state.moves import Step
from mlp_hub.store.repos.jobs.runs import sha256_of
from mlp_hub.store.tx import Tx
from mlp_language.message import msg

MOST_PROGRAM = 262_144
"""Limit of jobs: bytes of a script up to which its text is stored with the run."""


async def program_of(workspace: Workspace, user: str, entry: str) -> str | None:
    """Return the text of a script in a user's home; None where it cannot be read, is too long or no text."""
    try:
        opened = await workspace.open_file(Home(user), entry, MOST_PROGRAM)
    except Refused:
        return None
    try:
        if opened.size > MOST_PROGRAM:
            return None
        data = await opened.read(0, MOST_PROGRAM)
    finally:
        opened.close()
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


async def note_program(board: Board, workspace: Workspace, job: Job, now: float) -> None:
    """Note the script that is about to start where another text is noted; a file that cannot be read changes nothing."""
    entry = job.spec.entry
    if entry is None:
        return
    try:
        text = await program_of(workspace, job.spec.user, entry)
    except (MLPError, OSError):
        return
    noted = board.programs.pop(job.uid, None)
    if text is None or noted == sha256_of(text):
        return
    known = await board.db.read(lambda tx: tx.runs.origin(job.uid))
    if known.program is None or sha256_of(text) == known.program:
        return

    def work(tx: Tx, changes: Changes) -> None:
        environment = tx.runs.text(known.environment)
        texts = (text,) if environment is None else (text, environment)
        tx.runs.put_origin(job.uid, replace(known, program=sha256_of(text)), texts)
        said = msg("{entry} has changed since the job was submitted; it starts as it is now", entry=entry)
        changes.add_event(tx, job.uid, now, Step("program-changed", said))

    await board.commit(work)

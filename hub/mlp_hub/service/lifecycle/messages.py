"""Sentences of the timeline of a job."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Sequence

from mlp_hub.domain.jobs.job import Cause, Failure, Hint
from mlp_hub.executors.base import AskedToEnd
from mlp_language.message import Message, msg, msgs

MOST_NODES = 8
"""Tuning: nodes that are named; the rest is counted."""


def ranks_on(placement: Sequence[str]) -> Message:
    """Say where ranks are: "on node a", "on nodes a (2), b (1)"; "on no node yet" when nobody knows."""
    if not placement:
        return msg("on no node yet")
    if placement.count(placement[0]) == len(placement):
        return msg("on node {node}", node=placement[0])
    nodes = [f"{node} ({n})" for node, n in Counter(placement).items()]
    if len(nodes) <= MOST_NODES:
        return msg("on nodes {nodes}", nodes=", ".join(nodes))
    return msg(
        "on nodes {nodes} and {n} more",
        nodes=", ".join(nodes[: MOST_NODES - 1]),
        n=len(nodes) - MOST_NODES + 1,
    )


def ended(failure: Failure) -> Message:
    """Say how an attempt failed: "rank 1 failed with exit code 3"."""
    who = msg("the job") if failure.rank is None else msg("rank {n}", n=failure.rank)
    match failure.cause:
        case Cause.PROGRAM_ERROR if failure.exit_code:
            return msg("{who} failed with exit code {code}", who=who, code=failure.exit_code)
        case Cause.SIGNAL if failure.signal is not None:
            number = failure.signal
            return msg("{who} was killed by signal {n} ({name})", who=who, n=number, name=_name(number))
        case _ if failure.message:
            return failure.localized_message
        case Cause.OUT_OF_MEMORY:
            return msg("{who} ran out of memory", who=who)
        case _:
            return msg("{who} ended: {cause}", who=who, cause=failure.cause.value)


def remedy(hint: Hint, tenant: str, limit: int = 0) -> Message:  # noqa: PLR0911 - one return a hint
    """Return the cause of a failure of this tenant's job, and the remedy for the reader.

    The remedy names the people who can apply it. `limit` is the number that the failure is about.
    """
    match hint:
        case Hint.NO_NETWORK:
            return msg(
                "jobs of team {tenant} have no network; an administrator of the hub can allow it",
                tenant=tenant,
            )
        case Hint.NETWORK_MISSING:
            return msg(
                "jobs of team {tenant} may use the network, but this machine cannot give them one; `mlp-hub doctor` shows an administrator of the hub the missing parts",
                tenant=tenant,
            )
        case Hint.MEMORY_FILES:
            return msg(
                "files in /dev/shm are memory of the job, and on one machine those in /tmp are too; the full one holds {limit} MiB: "
                "write large files to ~ or /workspace, or ask for more --ram or --shm",
                limit=f"{limit:,}",
            )
        case Hint.SAME_MEMORY:
            return msg(
                "another attempt would ask for the same memory, so there was none; ask for more: --ram {limit}",
                limit=limit,
            )
        case Hint.MORE_MEMORY:
            return msg("ask for more memory: --ram {limit}", limit=limit)
        case Hint.PROCESS_LIMIT:
            return msg(
                "its processes and threads reached their limit of {limit}; start fewer of them, for example fewer workers of a pool or a DataLoader",
                limit=f"{limit:,}",
            )
        case Hint.DESCRIPTOR_LIMIT:
            return msg(
                "each of its processes can have {limit} open files and sockets; close some, or raise the number in the program with resource.setrlimit",
                limit=f"{limit:,}",
            )
        case (
            Hint.NOBODY_ANSWERS
            | Hint.STARTS_AT_HOME
            | Hint.COMMAND_MISSING
            | Hint.MODULE_MISSING
            | Hint.OWN_PROGRAM
        ):
            return _unlike_a_terminal(hint)


def _unlike_a_terminal(hint: Hint) -> Message:
    if hint is Hint.NOBODY_ANSWERS:
        return msg(
            "nobody answers in a job: remove breakpoint(), and give what it asks for with --param or --env, or as arguments after --"
        )
    if hint is Hint.COMMAND_MISSING:
        return msg(
            "the shell of a job reads no ~/.bashrc: set PATH in the script, or source conda's etc/profile.d/conda.sh before conda; a "
            "script for bash begins with #!/bin/bash"
        )
    if hint is Hint.MODULE_MISSING:
        return msg(
            "install a package with `pip install --user` in a notebook, or choose an environment with --env-name; a script imports the "
            "modules beside it, a cell those in the directory of --workdir"
        )
    if hint is Hint.OWN_PROGRAM:
        return msg(
            "a program sees nothing of the notebook: import and define in it what it needs, send variables with --with, or submit the "
            "notebook itself"
        )
    return msg(
        "a job starts in the home directory or in that of --workdir, not in the directory of its program: submit it with --workdir DIR, or use paths relative to its start directory",
    )


def killed_for_memory(ranks: Sequence[int]) -> Message:
    """Say of which ranks a process was killed, while the program went on."""
    return msgs(
        "a process of rank {ranks} was killed for memory; the program continued",
        "processes of ranks {ranks} were killed for memory; the program continued",
        n=len(ranks),
        ranks=", ".join(map(str, ranks)),
    )


def lines_lost(count: int) -> Message:
    """Say how much of an attempt's output could not be kept."""
    return msgs(
        "{n} line of its output could not be kept; if there was room again before its end, its log shows where and why",
        "{n} lines of its output could not be kept; if there was room again before its end, its log shows where and why",
        n=count,
    )


OUTPUT_CUT = msg(
    "the last lines of its output may be missing: it vanished, or had to be killed, before they were written"
)
"""Report about an attempt whose end nobody wrote down."""


REMARKS = frozenset(
    {
        "{who} ended; the others ({left}) still run",
        "{who} ended; the others ({left}) have written nothing and used no processor for {n} s: perhaps they wait for it",
        "no rank has written anything or used the processor for {n} s: perhaps they wait for each other",
    }
)
"""Templates of executors' remarks while ranks run."""


def came_to_end(ending: AskedToEnd, ended_at: float, *, saves: bool) -> Message:
    """Say what came of the request to end: whether the processes ended by themselves, and what the newest checkpoint is."""
    span = took(ended_at - ending.asked_at)
    saved = ending.checkpoint_at
    if not saves:
        if ending.killed:
            return msg("its processes were killed {span} after they were asked to end", span=span)
        return msg("its processes ended by themselves {span} after they were asked to", span=span)
    if saved is None or saved < ending.asked_at:
        if ending.killed:
            return msg(
                "its processes were killed {span} after they were asked to end; no checkpoint is newer than the request",
                span=span,
            )
        return msg(
            "its processes ended by themselves {span} after they were asked to; no checkpoint is newer than the request",
            span=span,
        )
    before = took(max(ended_at - saved, 0.0))
    if ending.killed:
        return msg(
            "its processes were killed {span} after they were asked to end; a checkpoint was last written {before} before that",
            span=span,
            before=before,
        )
    return msg(
        "its processes ended by themselves {span} after they were asked to; a checkpoint was written {before} before that",
        span=span,
        before=before,
    )


def behind(position: int | None) -> Message:
    """Say how many jobs are before this one in its tenant's queue."""
    ahead = (position or 1) - 1
    if ahead == 0:
        return msg("first in its queue")
    return msgs("queued behind {n} job", "queued behind {n} jobs", n=ahead)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def took(seconds: float) -> Message:
    """Return how long an attempt, or several, ran: to a tenth of a second below two minutes."""
    if seconds < 120:
        return msg("{seconds} s", seconds=f"{max(seconds, 0.0):.1f}")
    minutes, left = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return msg("{hours} h {minutes} min", hours=hours, minutes=minutes)
    return msg("{minutes} min {seconds} s", minutes=minutes, seconds=left)

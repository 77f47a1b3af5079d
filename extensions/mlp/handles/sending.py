"""Sending of a request for a job: under another name where the one that we chose is in use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlp.client.rest import Client
from mlp.errors import Refused
from mlp.handles.job import Job
from mlp.rendering import words
from mlp.submitting import provenance

Json = dict[str, Any]

TRIES = 20
"""Names that are tried for a job that was given none: others may take the same at that moment."""


def send(client: Client, body: Json, *, named: bool) -> Job:
    """Submit a request; if a run of its name has not ended, return that one, with a `note` about it.

    A name that we chose and that is in use gets a number instead. The recorded origin is sent with it.
    """
    _, found = ask_for_job(client, body, client.submit, named=named)
    return found if isinstance(found, Job) else Job(client, found)


def ask_for_job(
    client: Client, body: Json, ask: Callable[[Json], Json], *, named: bool
) -> tuple[Json, Json | Job]:
    """Send a request for a new job, under another name if ours is in use.

    Returns the request with the answer, or the run that has not ended.
    """
    told = provenance.told()

    def asked(body: Json) -> tuple[Json, Json]:
        return body, ask({**body, "provenance": told} if told else body)

    try:
        return asked(body)
    except Refused as refused:
        there = _latest(client, str(body["name"])) if refused.reason == "Conflict" else None
        if there is None:
            raise
    if there.final:  # it ended just now
        return asked(body)
    if named:
        there.note = words.still_there(there.data)
        return body, there
    taken = {str(j["name"]) for j in client.jobs()}
    for _ in range(TRIES):
        name = free_name(body["name"], taken)
        try:
            return asked({**body, "name": name})
        except Refused as refused:
            if refused.reason != "Conflict":
                raise
        taken.add(name)  # somebody took it meanwhile, as where many are submitted side by side
    return asked(body)  # no number was free: the service's refusal of the name itself is what is raised


def _latest(client: Client, name: str) -> Job | None:
    try:
        return Job(client, client.job(name))
    except Refused:
        return None


def free_name(name: str, taken: set[str]) -> str:
    """Return the next name with a number that nobody has: digits-2 for digits, digits-3 for digits-2."""
    stem, dash, last = name.rpartition("-")
    # mpi-1121-103205: a date is no number to count on from
    number = int(last) if dash and last.isdecimal() and len(last) < 4 else 0
    stem = stem if number else name
    number = max(number, 1)
    while True:
        number += 1
        tail = f"-{number}"
        free = stem[: 50 - len(tail)].rstrip("-") + tail
        if free not in taken:
            return free

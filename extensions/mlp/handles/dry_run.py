"""Output of `--dry-run`: the request, the resulting job and its resources, or the refusal of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlp.client.rest import Client
from mlp.errors import NoHub, NotThere
from mlp.grammar.job_options import BY_NAME, SHAPE, Option
from mlp.handles.job import Job
from mlp.handles.sending import ask_for_job
from mlp.language import say, says
from mlp.rendering import reasons, tables, words

Json = dict[str, Any]


def dry_run(client: Client, body: Json, *, named: bool) -> tables.Sentences:
    """Say what would be sent and what it would be and get, without sending it; raises `Refused` where `send` does."""
    body, found = ask_for_job(client, body, lambda asked: _preview(client, asked), named=named)
    if isinstance(found, Job):
        return tables.Sentences([found.note], {"request": body, "job": found.data})
    offered = reasons.offer(found["offer"])
    lines = len(body.get("code", "").splitlines())
    what = body.get("entry") or says("a program of 1 line", "a program of {n} lines", lines)
    given = {**body, **body.get("amounts", {})}
    shape = say(", ").join(
        part for k, v in given.items() if k in BY_NAME and k != "env" for part in _written(BY_NAME[k], v)
    )
    return tables.Sentences(
        [say("Would submit {what}: {shape}", what=what, shape=shape), *_would_be(found), *offered.lines],
        {"request": body, **found},
    )


def _written(option: Option, value: Any) -> list[str]:
    """Write an option as a person does; one that may be repeated once for each value."""
    if value is True:
        return [option.flag]
    if not option.many:
        return [f"{option.flag} {option.shows(value)}"]
    values = [f"{name}={v}" for name, v in value.items()] if isinstance(value, Mapping) else value
    return [f"{option.flag} {v}" for v in values]


def _preview(client: Client, body: Json) -> Json:
    """Ask what a job would be and get; of a hub that is too old to know, only what its shape would get."""
    try:
        return client.preview(body)
    except (NotThere, NoHub):
        # what else may not be there (team, dataset, environment) is of the shape: the offer is refused for it too
        return {
            "offer": client.offer({k: body[k] for k in ("amounts", *(o.name for o in SHAPE)) if k in body})
        }


def _would_be(found: Json) -> list[str]:
    """Write which run of which size it would be, where that was told."""
    if "ranks_max" not in found:
        return []
    least, most, what = int(found["ranks_min"]), int(found["ranks_max"]), words.title(found)
    runtime = str(found["runtime"])
    if least != most:
        return [
            say(
                "Would be {job}: {least} to {most} ranks with runtime {runtime}.",
                job=what,
                least=least,
                most=most,
                runtime=runtime,
            )
        ]
    return [
        says(
            "Would be {job}: 1 rank with runtime {runtime}.",
            "Would be {job}: {n} ranks with runtime {runtime}.",
            most,
            job=what,
            runtime=runtime,
        )
    ]

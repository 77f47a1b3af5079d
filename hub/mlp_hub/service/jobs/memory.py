"""Memory that earlier runs used: the choice of `--ram auto`, its reason in words, and its form on the wire."""

from __future__ import annotations

from msgspec import structs

from mlp_api.jobs.earlier_runs import MemoryOfEarlierRuns
from mlp_api.jobs.jobs import JobCreate
from mlp_api.localized import Text
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs.job import JobSpec
from mlp_hub.domain.jobs.right_size import MARGIN_MIB, MARGIN_PERCENT, MOST_MIB, PastMemory
from mlp_language.message import NOTHING, Message, Quantity, msg, msgs

AUTO = "auto"
_GIB = 1024
"""Given: MiB."""


def unsized(asked: JobCreate) -> JobCreate:
    """Return a request without `auto`: with memory that holds all parts of it, so that the rest can be checked."""
    return structs.replace(asked, ram=MOST_MIB) if asked.ram == AUTO else asked


def sized(asked: JobCreate, spec: JobSpec, past: PastMemory | None) -> JobCreate:
    """Return a request with the amount that fits by its earlier runs; raises `Refused` where none are known."""
    if past is None:
        raise Refused(
            Reason.INVALID,
            msg(
                "ram is auto, but no run like {name} has finished yet, so nobody knows what it uses; "
                "give an amount for the first run, such as 2G",
                name=spec.name,
            ),
        )
    return structs.replace(asked, ram=past.fitting(spec))


def memory_to(past: PastMemory | None) -> MemoryOfEarlierRuns | None:
    """Return the memory of earlier runs; None if none is known."""
    if past is None:
        return None
    return MemoryOfEarlierRuns(
        runs=len(past.runs),
        used=past.most,
        asked=past.asked,
        ran_out=past.ran_out,
        fitting=past.fitting(),
        text=Text(used_words(past)),
    )


def used_words(past: PastMemory) -> Message:
    """Say how much of their memory earlier runs used."""
    used = msgs(
        "the last run like it used at most {used} of {asked} per rank",
        "the last {n} runs like it used at most {used} of {asked} per rank",
        n=len(past.runs),
        used=_amount(past.most),
        asked=_amount(past.asked),
    )
    if not past.ran_out:
        return used
    return msgs(
        "{text}, and one of them ran out of memory",
        "{text}, and {n} of them ran out of memory",
        n=past.ran_out,
        text=used,
    )


def chosen_words(past: PastMemory | None, spec: JobSpec) -> Message:
    """Say why `auto` chose the memory of a job; nothing if nothing is known."""
    if past is None:
        return NOTHING
    return msg(
        "{ram} per rank was chosen: {text}, and {percent} % is added, at least {least}",
        ram=_amount(spec.per_worker.ram),
        text=used_words(past),
        percent=MARGIN_PERCENT,
        least=_amount(MARGIN_MIB),
    )


def _amount(mib: int) -> Quantity:
    return Quantity(mib, "MiB") if mib < _GIB else Quantity(round(mib / _GIB, 2), "GiB")

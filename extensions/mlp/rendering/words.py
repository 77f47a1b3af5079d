"""How a job's facts read: shared by picture, text, tables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from mlp.language import say, says
from mlp.rendering.format import between, starts
from mlp.rendering.history import FINAL
from mlp.terms import REASONS

NOT_YET = frozenset({"queued", "admitted", "starting"})
"""Phases of a job of which no rank runs yet."""
HAVE_ROOM = frozenset({"admitted", "starting", "running"})
"""Phases of a job that holds its quota and nodes, and is not asked to end."""
SCOPE_PREFIX = "custom:mlp:"
"""How the hub writes scopes that are the platform's."""


def reason(typed: object) -> str:
    """Write a typed reason as people read it: "Waits for quota"; one that is newer than this program as it is."""
    known = REASONS.get(str(typed))
    return capital(known() if known else str(typed or ""))


def sentences(*texts: str) -> str:
    """Join sentences in the usual way; empty ones are left out."""
    first, *others = filter(None, texts)
    for text in others:
        first = say("{first} {second}", first=first, second=text)
    return first


def bare(text: str) -> str:
    """Return a sentence without its full stop, for a place that sets its own."""
    return text.rstrip(".。")


def capital(text: str) -> str:
    """Write a sentence with the capital letter that it begins with."""
    return f"{text[:1].upper()}{text[1:]}"


_PHASES: Mapping[str, Callable[[], str]] = {
    "queued": lambda: say("queued"),
    "admitted": lambda: say("admitted"),
    "starting": lambda: say("starting"),
    "running": lambda: say("running"),
    "suspending": lambda: say("suspending"),
    "suspended": lambda: say("suspended"),
    "preempting": lambda: say("preempting"),
    "resizing": lambda: say("resizing"),
    "finishing": lambda: say("finishing"),
    "finished": lambda: say("finished"),
    "failed": lambda: say("failed"),
    "cancelling": lambda: say("cancelling"),
    "cancelled": lambda: say("cancelled"),
    "deleting": lambda: say("deleting"),
    "unknown": lambda: say("unknown"),
    # of ranks
    "waiting": lambda: say("waiting"),
    "pending": lambda: say("pending"),
    "exited": lambda: say("exited"),
    "killed": lambda: say("killed"),
    "lost": lambda: say("lost"),
    "stopped": lambda: say("stopped"),
}


def phase_word(phase: object) -> str:
    """Write the phase of a job or of a rank; one that is newer than this program as it is."""
    known = _PHASES.get(str(phase))
    return known() if known else str(phase)


_EARLY = "StoppedEarly"


def state_word(job: Mapping[str, Any]) -> str:
    """Write the phase of a job; of a trial that its sweep stopped early that, as nobody cancelled it."""
    return REASONS[_EARLY]() if stopped_early(job) else phase_word(job.get("phase", "unknown"))


def stopped_early(job: Mapping[str, Any]) -> bool:
    """Return whether it is a trial that its sweep stopped early."""
    return job.get("phase") == "cancelled" and job.get("reason") == _EARLY


def shell() -> Any:
    """Return the IPython that this process is; None where it is none."""
    module = sys.modules.get("IPython")
    return None if module is None else module.get_ipython()


def command(line: str) -> str:
    """Write a command of ours as one would type it here: `%mlp watch digits` in IPython, `mlp watch digits` else."""
    return f"mlp {line}" if shell() is None else f"%mlp {line}"


def first_command() -> str:
    """Write how one would start a first job here."""
    return (
        "mlp submit SCRIPT --workers 2 --cpu 0.4" if shell() is None else "%%mlp submit --workers 2 --cpu 0.4"
    )


def title(job: Mapping[str, Any]) -> str:
    """Write which job it is: digits, of a later run digits run 2."""
    run = job.get("run") or 1
    name = str(job.get("name", ""))
    return say("{name} run {run}", name=name, run=run) if run != 1 else name


def reference(job: Mapping[str, Any]) -> str:
    """Write a job as commands name it. By the name alone they mean the latest run, so an ended one is `NAME@RUN`."""
    name, run = str(job.get("name", "")), job.get("run")
    if run is None or (run == 1 and job.get("phase") not in FINAL):
        return name
    return f"{name}@{run}"


def version(model: Mapping[str, Any]) -> str:
    """Return what means this version of a model and no other: net@2."""
    return f"{model['name']}@{model['version']}" if model.get("name") else ""


def model_state(model: Mapping[str, Any]) -> str:
    """Return the state of a model's version, and the reason of an error, in words."""
    said: dict[str, Callable[[], str]] = {
        "creating": lambda: say("being copied"),
        "ready": lambda: say("ready"),
        "error": lambda: say("error: {why}", why=str(model.get("message") or "")),
        "deleting": lambda: say("being deleted"),
    }
    state = str(model.get("state") or "")
    return said[state]() if state in said else state


def stage(value: object) -> str:
    """Say how far a version of a model is used."""
    said: dict[str, Callable[[], str]] = {
        "none": lambda: "",
        "staging": lambda: say("staging"),
        "production": lambda: say("production"),
        "archived": lambda: say("archived"),
    }
    return said[str(value)]() if value in said else str(value or "")


def still_there(job: Mapping[str, Any]) -> str:
    """Say that a run which has not ended is shown in place of the next one."""
    args = {"name": str(job.get("name")), "run": job.get("run") or 1}
    if job.get("phase") == "queued":
        it = say(
            "Nothing was submitted: {name} run {run} still waits, and is shown here as it was submitted.",
            **args,
        )
    elif job.get("phase") == "suspended":
        it = say(
            "Nothing was submitted: {name} run {run} is suspended, and is shown here as it was submitted.",
            **args,
        )
    else:
        it = say(
            "Nothing was submitted: {name} run {run} still runs, and is shown here as it was submitted.",
            **args,
        )
    return sentences(it, say("To run it again, cancel it first, or give another --name"))


_PRIORITIES = {200: "high", 100: "normal", 50: "low"}


def priority(value: object) -> str:
    """Write a priority by the name of its class: "high"; another number as it is."""
    name = _PRIORITIES.get(value, str(value)) if isinstance(value, int) else str(value)
    return {"high": say("high"), "normal": say("normal"), "low": say("low")}.get(name, name)


def workers(job: Mapping[str, Any]) -> str:
    """Write the gang: 2 workers, 2 to 4 workers + 1 ps; of an elastic one that was placed first how many it has."""
    low, _, high = str(job.get("workers", 1)).partition(":")
    now = sum(1 for rank in job.get("ranks") or () if rank.get("role") != "ps")
    if not high:
        text = says("1 worker", "{n} workers", int(low))
    elif now:
        text = says("1 worker ({low} to {high})", "{n} workers ({low} to {high})", now, low=low, high=high)
    else:
        text = say("{low} to {high} workers", low=low, high=high)
    return say("{workers} + {ps} ps", workers=text, ps=job["ps"]) if job.get("ps") else text


def network(of: Mapping[str, Any]) -> str:
    """Write whether jobs of a tenant reach other machines, and who can change that; empty where nothing is known."""
    tenant, has = of.get("tenant"), of.get("network")
    if not tenant or not has:
        return ""
    if has == "outbound":
        return say("Jobs of team {tenant} may reach other machines.", tenant=str(tenant))
    return say(
        "Jobs of team {tenant} have no network; an administrator of the hub can allow it.",
        tenant=str(tenant),
    )


_KEPT: Mapping[str, Callable[[], str]] = {
    "encrypted": lambda: say("encrypted with its own key"),
    "dedicated": lambda: say("in its own root"),
}


def isolation(tenant: Mapping[str, Any]) -> str:
    """Write how a tenant's files are kept where that is not as for everybody, and whether they are being moved."""
    move, kept = tenant.get("move") or {}, _KEPT.get(str(tenant.get("isolation")))
    name = str(tenant.get("name"))
    if move.get("state") not in (None, "done", "failed"):
        return say(
            "The files of {tenant} are being moved. Nothing of it starts until the move is done.", tenant=name
        )
    if kept is None:
        return ""
    return say("Datasets, models and jobs' directories of {tenant} are kept {how}.", tenant=name, how=kept())


def note(job: Mapping[str, Any]) -> str:
    """Write the note of a job in one line; empty where there is none."""
    text = " ".join(str(job.get("note") or "").split())
    return say("Note: {note}", note=text) if text else ""


def unknown_start(why: Mapping[str, Any]) -> str:
    """Write why nobody can tell when a waiting job starts; empty where it can be told, or nothing is known."""
    because = bare(str(why.get("expected_because") or ""))  # a sentence, where it is the verdict itself
    if why.get("phase") != "queued" or why.get("expected_start") or not because:
        return ""
    if between((why.get("forecast") or {}).get("start")):
        return ""  # earlier runs do tell it
    if because.startswith(say("no time can be estimated")):
        return say("{text}.", text=capital(because))
    return say("No time can be estimated: {because}.", because=because)


def doing(why: Mapping[str, Any]) -> str:
    """Write what a job that has its room does or waits for, as its pods for their image; empty where its phase says all of it."""
    phase, because = str(why.get("phase")), bare(str(why.get("expected_because") or ""))
    if phase not in HAVE_ROOM or not because or because == say("it is {phase}", phase=phase):
        return ""
    return say("{text}.", text=capital(because))


def prospects(why: Mapping[str, Any]) -> list[str]:
    """Write what the state of a waiting job does not say: why no start can be told, and what would start now."""
    unknown, ways = unknown_start(why), why.get("would_start_now")
    short = str(why.get("cut_short") or "")
    return [
        *([unknown] if unknown else []),
        *(_smaller(why, str(way)) for way in (ways if isinstance(ways, list) else [])),
        *([say("{text}.", text=capital(short))] if short else []),
    ]


def _smaller(why: Mapping[str, Any], way: str) -> str:
    """Return the request with which a job would start now, the command for it, and the work that it costs."""
    name = reference({"name": why.get("job"), "run": why.get("run")})
    before = why.get("stopped")
    again = command(f"resubmit {name} {way}")
    saved = isinstance(before, Mapping) and before.get("checkpoint_at")
    said = say(
        "Could start now with {way}: {cancel}, then {again}",
        way=way,
        cancel=command(f"cancel {name}"),
        again=again,
    )
    if not saved:
        return said
    return say(
        "{what}; that is a new job. It starts from the beginning and does not use the checkpoint of {job}",
        what=said,
        job=name,
    )


def state(job: Mapping[str, Any]) -> str:
    """Return the job's state as text, with the reason if there is one."""
    word, notes = state_word(job), standing(job)
    return say("{state}: {why}", state=word, why=notes) if notes else word


def standing(job: Mapping[str, Any]) -> str:
    """Return the details of the job's state: place, expected start, reason; empty for a running one."""
    phase = str(job.get("phase", "unknown"))
    notes = []
    if phase == "queued":
        if job.get("position") is not None:
            notes.append(say("place {n} in the queue", n=job["position"]))
        when = between((job.get("forecast") or {}).get("start")) or starts(job.get("expected_start"))
        if when:
            notes.append(say("expected to start {time}", time=when))
    if job.get("message") and phase in {"queued", "suspended", "admitted", "starting"}:
        notes.append(str(job["message"]))
    return say("; ").join(notes)

"""How a job's facts read: shared by picture, text, tables."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from mlp.language import say, says
from mlp.rendering.format import amount, between, clock_time, memory, parse_time, span, starts
from mlp.rendering.history import FINAL
from mlp.terms import REASONS

CAUSES: Mapping[str, Callable[[], str]] = {
    "program-error": lambda: say("The program ended with an error"),
    "signal": lambda: say("A rank was killed by a signal"),
    "out-of-memory": lambda: say("Memory ran out"),
    "disk": lambda: say("Wrote too much to the disk"),
    "time-limit": lambda: say("The time limit was reached"),
    "node-lost": lambda: say("The node was lost"),
    "start-failed": lambda: say("The ranks could not be started"),
}
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
    return REASONS[_EARLY]() if _stopped_early(job) else phase_word(job.get("phase", "unknown"))


def _stopped_early(job: Mapping[str, Any]) -> bool:
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


def ending(thing: Mapping[str, Any]) -> str:
    """Write how a rank ended."""
    number_ = thing.get("signal")
    if number_ is not None:
        try:
            return signal.Signals(number_).name
        except ValueError:
            return say("signal {n}", n=number_)
    code = thing.get("exit_code")
    return "" if code is None else say("exit code {n}", n=code)


def cause(job: Mapping[str, Any]) -> str:
    """Write in a few words what went wrong and where, empty when nothing did."""
    found = job.get("failure")
    return _cause_and_place(found) if isinstance(found, Mapping) else ""


def _cause(found: Mapping[str, Any]) -> str:
    known = CAUSES.get(str(found.get("cause")))
    return known() if known else str(found.get("cause") or say("It failed"))


def _where(found: Mapping[str, Any]) -> str:
    """Write which rank failed and how it ended, as far as that is known."""
    rank = [say("rank {rank}", rank=found["rank"])] if found.get("rank") is not None else []
    return say(", ").join([*rank, *filter(None, [ending(found)])])


def _cause_and_place(found: Mapping[str, Any]) -> str:
    text, where = _cause(found), _where(found)
    return say("{what} ({where})", what=text, where=where) if where else text


def failure(job: Mapping[str, Any]) -> str:
    """Write what went wrong in one sentence, with the way out; empty when nothing did."""
    found = job.get("failure")
    if not isinstance(found, Mapping):
        return ""
    text = _cause_and_place(found)
    if found.get("message"):
        message = str(found["message"])
        if found.get("rank") is not None and message.startswith(say("rank {rank}", rank=found["rank"])):
            text = _cause(found)  # the message says where
        text = say("{what}: {why}", what=text, why=message)
    return say("{what}; {way_out}", what=text, way_out=str(found["remedy"])) if found.get("remedy") else text


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


def rank_state(job: Mapping[str, Any], rank: Mapping[str, Any]) -> str:
    """Return the state of a rank, in words; one that another rank stopped names that one."""
    state_, how = str(rank.get("state", "")), ending(rank)
    if state_ == "stopped":
        first = (job.get("failure") or {}).get("rank")
        if first is not None and first != rank.get("rank"):
            return say("stopped because rank {rank} failed", rank=first)
        return say("stopped") if how else say("never started")
    return (
        say("failed, {how}", how=how) if state_ == "failed" and how else phase_word(state_) if state_ else ""
    )


def cpu_used(rank: Mapping[str, Any]) -> str:
    """Write the cores that a rank used which has ended; empty where nothing is known."""
    mean, most = rank.get("cpu_mean"), rank.get("cpu_peak")
    if mean is None or most is None:
        return ""
    return say("{mean} on average, {most} at most", mean=amount(mean), most=amount(most))


def memory_used(rank: Mapping[str, Any]) -> str:
    """Write the memory that a rank used which has ended; empty where nothing is known."""
    mean, most = rank.get("ram_mean"), rank.get("ram_peak")
    if mean is None or most is None:
        return ""
    return say("{most} at most, {mean} on average", most=memory(most), mean=memory(mean))


def used(job: Mapping[str, Any]) -> str:
    """Write what each rank asked for and used: of several the mean of their cores, and the most of any; or nothing.

    The widget writes the same (`widgets/src/core/jobs/used.ts`), and one table tests both.
    """
    ranks = [rank for rank in job.get("ranks") or () if isinstance(rank, Mapping)]
    known = [r for r in ranks if r.get("cpu_mean") is not None and r.get("ram_peak") is not None]
    if not known:
        return ""
    mean = sum(float(r["cpu_mean"]) for r in known) / len(known)
    most = max(float(r["ram_peak"]) for r in known)
    told = {
        "ram": memory(job.get("ram")),
        "most": memory(most),
        "cpu": amount(job.get("cpu")),
        "mean": amount(mean),
    }
    if len(ranks) > 1:
        return say(
            "Each rank requested {ram}, used at most {most}; requested {cpu} cpu, used {mean} on average",
            **told,
        )
    return say("Requested {ram}, used at most {most}; requested {cpu} cpu, used {mean} on average", **told)


def reported(job: Mapping[str, Any]) -> str:
    """Write that the use of ranks is known by the job's own report alone; empty where somebody else measured it.

    The widget writes the same (`widgets/src/core/jobs/used.ts`).
    """
    ranks = [rank for rank in job.get("ranks") or () if isinstance(rank, Mapping)]
    return (
        say("Use of CPU and memory by the job's own report.") if any(r.get("reported") for r in ranks) else ""
    )


def memory_of_earlier_runs(found: Mapping[str, Any]) -> str:
    """Write how much memory earlier runs used, and the amount that was chosen by it or would be; empty where none are known.

    The widget writes the same (`widgets/src/core/jobs/used.ts`).
    """
    memory_ = found.get("memory") or {}
    if because := str(found.get("ram_because") or ""):
        return say("{text}.", text=capital(because))
    text, fitting = str(memory_.get("text") or ""), memory_.get("fitting")
    if not text or fitting is None:
        return ""
    return say("{text}; --ram auto takes {fitting}.", text=capital(text), fitting=memory(fitting))


def unused_gpus(job: Mapping[str, Any]) -> str:
    """Write that a job does not use its GPUs, what follows of it and what helps; empty where nothing is known of that.

    The monitor writes the same (`widgets/src/core/jobs/idle.ts`).
    """
    idle = job.get("idle") or {}
    if idle.get("claims") and idle.get("left_s") is None:
        return say("It reports that it works, but the cluster measures no work of it.")
    if not idle.get("idle_s") and not idle.get("kept_s"):
        return ""
    time, left = span(idle.get("idle_s") or 0), idle.get("left_s")
    if left is not None:
        said = {"time": time, "left": span(left), "command": command(f"keep {reference(job)}")}
        if idle.get("ends") == "cancel":
            return say(
                "Its GPUs were not used for {time}, and it is cancelled in {left}. To keep it: {command}",
                **said,
            )
        return say(
            "Its GPUs were not used for {time}, and it is suspended in {left}. To keep it: {command}", **said
        )
    if idle.get("kept_s"):
        return say("It is kept for {left}, whether it uses its GPUs or not.", left=span(idle["kept_s"]))
    return say("Its GPUs were not used for {time}.", time=time)


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


def stopped(why: Mapping[str, Any]) -> list[str]:
    """Write what became of the last attempt of a job that waits again, and what of its work is kept; or nothing."""
    found = why.get("stopped")
    if not isinstance(found, Mapping) or not found.get("message"):
        return []
    kept = str(found.get("kept") or "")
    return [
        say(
            "Its last attempt ended {time}: {what}.",
            time=clock_time(found.get("time")),
            what=bare(str(found["message"])),
        ),
        *([say("{text}.", text=capital(kept))] if kept else []),
    ]


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


def ended(job: Mapping[str, Any]) -> str:
    """Write how and when a job ended, in one sentence; empty for one that has not."""
    phase, at = str(job.get("phase")), clock_time(job.get("finished_at"))
    if phase not in FINAL:
        return ""
    name, seconds = title(job), ran_in_all(job)
    if phase == "finished":
        how = say("{job} finished at {time}", job=name, time=at) if at else say("{job} finished", job=name)
    elif phase == "failed":
        how = say("{job} failed at {time}", job=name, time=at) if at else say("{job} failed", job=name)
    elif _stopped_early(job):
        how = (
            say("{job} was stopped early at {time}", job=name, time=at)
            if at
            else say("{job} was stopped early", job=name)
        )
    elif at:
        how = say("{job} was cancelled at {time}", job=name, time=at)
    else:
        how = say("{job} was cancelled", job=name)
    if not seconds:
        return say("{text}.", text=how)
    if job.get("started_at"):
        return say("{what} after {span}.", what=how, span=span(seconds))
    return say("{what}; it had run for {span}.", what=how, span=span(seconds))


def restarts(job: Mapping[str, Any]) -> int:
    """Return how many attempts began after another; the one that a job waits for has not."""
    counted = int(job.get("restarts") or 0)
    return counted if job.get("started_at") else max(counted - 1, 0)


def time_limit(job: Mapping[str, Any]) -> str:
    """Return the time limit of an attempt as text, empty without a limit."""
    limit = job.get("time_limit")
    return say("time limit {span}", span=span(float(limit))) if limit else ""


def age(job: Mapping[str, Any], now: datetime | None = None) -> str:
    """Write for how long the job waits now, runs, or ran, and how long all its attempts together did."""
    now = now or datetime.now(UTC)
    started, submitted = parse_time(job.get("started_at")), parse_time(job.get("submitted_at"))
    whole = ran_in_all(job, now)
    ran = say("ran {span}", span=span(whole)) if whole else ""
    if job.get("finished_at"):
        return ran
    if started:
        runs = span((now - started).total_seconds())
        if job.get("ran_s"):
            return say("for {span}, {whole} in all", span=runs, whole=span(whole))
        return say("for {span}", span=runs)
    if since := parse_time(job.get("waiting_since")):
        waits = say("waits {wait}", wait=span((now - since).total_seconds()))
        return say(", ").join(filter(None, [waits, ran]))
    if submitted and job.get("phase") == "suspended" and not ran:
        return say("submitted {span} ago", span=span((now - submitted).total_seconds()))
    waited = job.get("waited_s")
    return ran or ("" if waited is None else say("waited {span}", span=span(float(waited))))


def ran_in_all(job: Mapping[str, Any], now: datetime | None = None) -> float:
    """Return the seconds that all attempts of a job ran, the one that runs included."""
    started, ended = parse_time(job.get("started_at")), parse_time(job.get("finished_at"))
    last = (
        0.0 if started is None else max(((ended or now or datetime.now(UTC)) - started).total_seconds(), 0.0)
    )
    over = job.get("ran_s")
    if ended:
        return last if over is None else float(over)  # a picture that an older hub saved does not have it
    return float(over or 0) + last


_ENOUGH = ((5, 10), (2, 60))
"""Tuning: percentage points of progress, and seconds, from which an estimate is made: either pair.

They are as in `widgets/src/core/stream/eta.ts`. A job begins with one-time work, whose first points alone
would give a quarter of an hour.
"""


def left_or_end(job: Mapping[str, Any]) -> str:
    """Return the time left of a running job by its progress, or its end by its earlier runs; empty where neither is known."""
    return time_left(job) or (forecast_end(job) if job.get("phase") == "running" else "")


def time_left(job: Mapping[str, Any], now: datetime | None = None) -> str:
    """Return an estimate of the time left from this attempt's progress, empty while none is sound."""
    began, progress = parse_time(job.get("progress_since")), float(job.get("progress") or 0)
    done = progress - float(job.get("progress_from") or 0)
    if job.get("phase") != "running" or began is None or progress >= 100:
        return ""
    passed = ((now or datetime.now(UTC)) - began).total_seconds()
    if not any(done >= points and passed >= seconds for points, seconds in _ENOUGH):
        return ""
    return say("about {span} left", span=span(passed * (100 - progress) / done))


def forecast_end(job: Mapping[str, Any]) -> str:
    """Write when a job ends by its earlier runs, or that it runs longer than these; empty if nothing is known."""
    told = job.get("forecast") or {}
    if when := between(told.get("end")):
        return say("expected to end {time} ({because})", time=when, because=str(told.get("because")))
    return "" if told.get("start") else bare(str(told.get("because") or ""))


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

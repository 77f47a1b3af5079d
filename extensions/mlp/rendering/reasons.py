"""Reasons for a job's state, and the offer for a shape: typed reasons, decisions, offers as sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlp.language import say, says
from mlp.rendering import costs, ends, rank_use, words
from mlp.rendering.fitting import width
from mlp.rendering.format import amount, between, clock_time, memory, span, starts
from mlp.rendering.tables import Sentences
from mlp.rendering.words import sentences

Json = dict[str, Any]


def verdicts(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Write typed reasons as sentences, each with its facts below it."""
    lines = []
    for v in found:
        lines.append(say("{what}: {why}", what=words.reason(v.get("reason")), why=str(v.get("message", ""))))
        lines += facts(v.get("facts") or ())
    return lines


def facts(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Write the facts behind a reason as a small table: what, how much, and who it is about."""
    rows = [(str(f.get("label")), str(f.get("value")), str(f.get("who") or "")) for f in found]
    labels = max((width(label) for label, _, _ in rows), default=0)
    values = max((width(value) for _, value, _ in rows), default=0)
    return [f"  {_fill(what, labels)}  {_fill(value, values)}  {who}".rstrip() for what, value, who in rows]


def _fill(text: str, columns: int) -> str:
    return text + " " * (columns - width(text))


MOST_DECISIONS = 4


def why(found: Json, job: Mapping[str, Any] | None = None, told: Sequence[Json] = ()) -> Sentences:
    """Return the reason for a job's state as text; `job` is needed for the end of one that has ended.

    `told` is the scheduler's decisions about it, and their reasons.
    """
    phase = found.get("phase")
    which = {"name": found.get("job"), "run": found.get("run"), "phase": phase}
    name = words.reference(which)
    end = ends.ended(job) if job else ""
    lines = [end or say("{job} is {state}.", job=words.title(which), state=words.state_word(job or which))]
    if job and (failure := ends.failure(job)):
        lines.append(say("{text}.", text=words.bare(failure)))
        first = (job.get("failure") or {}).get("rank")
        logs = words.command(f"logs {name}{'' if first is None else f' --rank {first}'}")
        lines.append(say("Full output: {command}", command=logs))
    if job:
        lines += filter(
            None, (rank_use.unused_gpus(job) if phase == "running" else "", rank_use.reported(job))
        )
    lines += ends.stopped(found)
    lines += verdicts(found.get("reasons") or ())
    if phase == "suspended":
        lines.append(say("To continue: {command}", command=words.command(f"resume {name}")))
    if found.get("position") is not None:
        alone = found["position"] == found.get("queue_length") == 1
        place = {"n": found["position"], "all": found.get("queue_length") or 0}
        lines.append(say("Next in the queue.") if alone else say("Place {n} of {all} in the queue.", **place))
    lines += forecast(found)
    if found.get("expected_start"):
        when, because = starts(found["expected_start"]), str(found.get("expected_because") or "")
        if (found.get("forecast") or {}).get("start"):
            lines.append(say("By time limits: {time} at the latest ({because}).", time=when, because=because))
        else:
            lines.append(
                say("Expected to start {time} ({because}).", time=when, because=because)
                if because
                else say("Expected to start {time}.", time=when)
            )
        if found.get("sure_because"):
            sure = say("sure") if found.get("how_sure") == "sure" else say("likely")
            lines.append(say("Confidence: {sure}, {because}.", sure=sure, because=str(found["sure_because"])))
    lines += words.prospects(found)
    if now := words.doing(found):
        lines.append(now)
    for decision in told[-MOST_DECISIONS:]:
        lines += decided(decision)
    return Sentences(lines, {**found, "decisions": list(told)} if told else found)


def forecast(found: Json) -> list[str]:
    """Write when a job starts and ends by earlier runs; nothing if too little is known."""
    told = found.get("forecast") or {}
    because = words.bare(str(told.get("because") or ""))
    start, end = between(told.get("start")), between(told.get("end"))
    if start and end:
        return [
            say(
                "Expected to start {time} and to end {end} ({because}).", time=start, end=end, because=because
            )
        ]
    if start:
        return [say("Expected to start {time} ({because}).", time=start, because=because)]
    if end:
        return [say("Expected to end {time} ({because}).", time=end, because=because)]
    return [say("{text}.", text=words.capital(because))] if because else []


def decided(decision: Json) -> list[str]:
    """Write one decision of the scheduler: why then, why there, why this one."""
    at, what = clock_time(decision.get("time")), str(decision.get("summary"))
    lines = [say("{time}: {what}.", time=at, what=what)]
    inside = []
    if decision.get("waited_for"):
        inside.append(say("Reason for the wait until then: {what}", what=str(decision["waited_for"])))
    if decision.get("changed"):
        inside.append(say("Changes: {what}.", what=say("; ").join(map(str, decision["changed"][:3]))))
    if passed := decision.get("passed"):
        jobs = [say("{job} ({why})", job=_who(p), why=words.reason(p.get("reason"))) for p in passed[:3]]
        more = int(decision.get("passed_count") or 0) - len(jobs)
        if more > 0:
            jobs.append(says("1 more", "{n} more", more))
        inside.append(say("Ahead of it, but could not start: {jobs}.", jobs=say(", ").join(jobs)))
    others = [str(n.get("node")) for n in decision.get("nodes") or () if not n.get("chosen")]
    if others:
        inside.append(say("Next best: {nodes}.", nodes=say(", ").join(others[:3])))
    inside += map(_victim, decision.get("victims") or ())
    inside += [say("Not touched: {what}.", what=str(text)) for text in (decision.get("spared") or ())[:3]]
    return [*lines, *(f"  {line}" for line in inside)]


def _who(part: Json) -> str:
    """Name a job, or whose it is where that is not the reader's to know."""
    if part.get("job"):
        return say("{job} of {user}", job=str(part["job"]), user=str(part.get("user") or ""))
    if part.get("tenant"):
        return says("a job of team {tenant}", "{n} jobs of team {tenant}", 1, tenant=str(part["tenant"]))
    return says("a job of another team", "{n} jobs of other teams", 1)


def _victim(victim: Json) -> str:
    how = say("stopped") if victim.get("chosen") else say("not stopped")
    if victim.get("gives"):
        how = says("gives up 1 worker", "gives up {n} workers", int(victim["gives"]))
    return say(
        "{who}, priority {priority}: {how}, {why}.",
        who=_who(victim),
        priority=words.priority(victim.get("priority")),
        how=how,
        why=str(victim.get("why")),
    )


NEVER = {"ExceedsMaxQuota", "NoMatchingFlavor"}
"""Reasons that do not pass by waiting."""


def offer(found: Json) -> Sentences:
    """Write what a job of a shape would get."""
    cost = say(", ").join(
        [
            say("{amount} cpu", amount=amount(found.get("cpu"))),
            say("{amount} gpu", amount=amount(found.get("gpu"))),
            memory(found.get("ram")),
        ]
    )
    gives_way = [str(text) for text in found.get("gives_way") or ()]
    told = found.get("forecast") or {}
    if found.get("fits_now"):
        places = found.get("placement") or {}
        where = say(", ").join(
            says("1 rank on {node}", "{n} ranks on {node}", int(n), node=node) for node, n in places.items()
        )
        when = say("Would start now")
        if gives_way:
            grace = span(float(found.get("grace") or 0))
            when = say("Would start as soon as others have made room, within {span}", span=grace)
        lines = [say("{what}: {where}.", what=when, where=where) if where else say("{text}.", text=when)]
        lines += [say("{text}.", text=words.capital(text)) for text in gives_way]
    elif found.get("expected_start") or told.get("start"):
        when, because = between(told.get("start")), words.bare(str(told.get("because") or ""))
        if not when:
            when, because = starts(found["expected_start"]), str(found.get("expected_because") or "")
        lines = [
            say("Would wait; expected to start {time} ({because}).", time=when, because=because)
            if because
            else say("Would wait; expected to start {time}.", time=when)
        ]
    elif NEVER & {str(v.get("reason")) for v in found.get("reasons") or ()}:
        lines = [say("Would be refused: it can never start.")]
    else:
        unknown = words.unknown_start({**found, "phase": "queued"})
        wait = say("Would wait.") if unknown else say("Would wait; its start time is not known.")
        lines = [sentences(wait, unknown)]
    if end := between(told.get("end")):
        lines.append(
            says(
                "By its earlier run it would end {time}.",
                "By its {n} earlier runs it would end {time}.",
                int(told.get("runs") or 0),
                time=end,
            )
        )
    lines.append(say("Needed quota: {amounts}.", amounts=cost))
    lines += [line] if (line := rank_use.memory_of_earlier_runs(found)) else []
    lines += [priced] if (priced := costs.offered(found.get("cost"))) else []
    lines += verdicts(found.get("reasons") or ())
    lines += [say("Could start now with {way}.", way=str(way)) for way in found.get("would_start_now") or ()]
    lines += [said] if (said := words.network(found)) else []
    return Sentences(lines, found)

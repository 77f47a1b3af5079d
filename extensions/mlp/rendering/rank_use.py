"""Use of a job's ranks as it reads: processors, memory and GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlp.language import say
from mlp.rendering.format import amount, memory, span
from mlp.rendering.words import capital, command, reference


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
    asked = memory_.get("asked")
    if asked is None or asked == fitting:
        return say("{text}; --ram auto requests the same amount.", text=capital(text))
    told = {
        "text": capital(text),
        "fitting": memory(fitting),
        "difference": memory(abs(fitting - asked)),
    }
    if fitting < asked:
        return say("{text}; --ram auto requests {fitting}, {difference} less.", **told)
    return say("{text}; --ram auto requests {fitting}, {difference} more, because it adds a margin.", **told)


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

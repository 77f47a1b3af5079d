"""What a tenant is told of another tenant's jobs: that there is one, not its name nor whose it is.

The scheduling core names the jobs that its decisions are about; who reads the reason may not know of all of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.job import Job
from mlp_hub.scheduler.model import Verdict, Why
from mlp_hub.scheduler.words import listing

ABOUT_OTHERS = frozenset({Reason.RESERVED, Reason.WAITING_FOR_PREEMPTED})
"""Reasons of waiting that name jobs of any tenant; the others name what the tenant itself holds, or nodes."""
GONE = "other jobs were before it, and have ended meanwhile"


def without_names(text: str, tenant: str, jobs: Iterable[Job]) -> str:
    """Return the text for a tenant's eyes: those of these jobs that are another tenant's lose their names."""
    for job in jobs:
        spec = job.spec
        if spec.tenant == tenant:
            continue
        named = f"{spec.name} of {spec.user}"
        if named not in text:
            continue
        text = replaced(text, named, spec.tenant, f"a job of tenant {spec.tenant}")
    return gathered(text)


_ALIKE = re.compile(r"a (job|notebook server)( of tenant [\w.-]*\w)")
_ITEM = rf"(?:{_ALIKE.pattern.replace('(', '(?:')}|(?:job )?[\w.-]+ of [\w.@-]*\w|\d+ more)"
_LIST = re.compile(rf"{_ITEM}(?:, {_ITEM})* and {_ITEM}")


def gathered(text: str) -> str:
    """Return the text with those of a list counted that are told alike: "2 jobs of tenant red and own of bob"."""
    return _LIST.sub(_counted, text) if text.count(" of tenant ") > 1 else text


def _counted(found: re.Match[str]) -> str:
    items = Counter(re.split(r", | and ", found[0]))
    if all(n == 1 for n in items.values()):
        return found[0]
    return listing(_ALIKE.sub(rf"{n} \1s\2", item) if n > 1 else item for item, n in items.items())


def replaced(text: str, named: str, tenant: str, shown: str) -> str:
    """Replace what is named "NAME of USER" in a text, with "job" before it and its tenant after it where they are there."""
    # whole names only: "a of bo" is in "data of bob" too, and half a name would be left of that
    whole = rf"(?<![\w.-])(?:job )?{re.escape(named)}(?: in {re.escape(tenant)})?(?![\w@-]|\.\w)"
    return re.sub(whole, lambda _: shown, text)


def reason_for(verdict: Verdict, tenant: str, jobs: Mapping[str, Job]) -> Verdict:
    """Return the reason of a waiting job for its tenant's eyes."""
    if verdict.reason not in ABOUT_OTHERS:
        return verdict
    return stop_for(verdict, tenant, jobs)


def stop_for(verdict: Verdict, tenant: str, jobs: Mapping[str, Job]) -> Verdict:
    """Return why a running job is stopped, or why one waits for others, for its tenant's eyes.

    Whose jobs are not known any more cannot be told: then no sentence that may name them is shown.
    """
    about = [jobs[uid] for uid in verdict.blocked_by if uid in jobs]
    if len(about) < len(verdict.blocked_by):
        return replace(verdict, message=GONE)
    message = without_names(verdict.message, tenant, about)
    return verdict if message == verdict.message else replace(verdict, message=message)


def why_for(why: Why, tenant: str, jobs: Mapping[str, Job]) -> Why:
    """Return a whole answer for its tenant's eyes."""
    return replace(
        why,
        reasons=tuple(reason_for(v, tenant, jobs) for v in why.reasons),
        expected_because=without_names(why.expected_because, tenant, jobs.values()),
        sure_because=without_names(why.sure_because, tenant, jobs.values()),
        gives_way=tuple(without_names(text, tenant, jobs.values()) for text in why.gives_way),
    )

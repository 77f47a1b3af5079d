"""Completion of verbs, options, runtimes, tenants and job names: for IPython's tab key and for shells."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from mlp.appoptions import ACTS as APP_ACTS
from mlp.client import Client
from mlp.errors import MLPError, UsageError
from mlp.options import Option
from mlp.terms import RUNTIMES
from mlp.verbs import find, languages, options_of, verbs_of

ACTS = ("ls", "show", "register", "stage", "get", "rm")
ENV_ACTS = ("list", "create", "show", "delete")
DATA_ACTS = ("ls", "pull", "push", "rm")
Lookup = Callable[[str], Iterable[str]]
SCRIPTS = {
    "bash": """_mlp() {
    local IFS=$'\\n'
    COMPREPLY=($(mlp _complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
COMP_WORDBREAKS=${COMP_WORDBREAKS//@}
complete -o default -F _mlp mlp
""",
    "zsh": """#compdef mlp
_mlp() {
    local -a found
    found=("${(@f)$(mlp _complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "$found" ]]; then compadd -a found; else _files; fi
}
compdef _mlp mlp
""",
    "fish": """function __mlp_complete
    set -l words (commandline -opc) (commandline -ct)
    mlp _complete $words[2..-1] 2>/dev/null
end
complete -c mlp -a '(__mlp_complete)'
""",
}


def complete(words: Sequence[str], current: str, surface: str, lookup: Lookup) -> list[str]:
    """Return what may stand in place of `current` after `words` (the verb first)."""
    if not words:
        return _fitting([v.name for v in verbs_of(surface)], current)
    if "--" in words:
        return []
    try:
        verb = find(words[0], surface)
    except UsageError:
        return []
    known = {flag: o for o in options_of(verb, surface) for flag in o.flags}
    before = known.get(words[-1])
    if before is not None and before.parse is not None:
        return _fitting(_values(before, lookup), current)
    if current.startswith("-"):
        return _flags(options_of(verb, surface), words, current, lookup)
    return _fitting(_names(verb.takes, words[1:], lookup), current)


def _names(takes: str, before: Sequence[str], lookup: Lookup) -> Iterable[str]:
    if takes == "data":
        if not before:
            return DATA_ACTS
        # what is pushed, and where to is pulled, are files here: a shell knows them
        named = {"ls": 1, "pull": 1, "push": 2}.get(before[0])
        return lookup("datasets") if named in {None, len(before)} else ()
    if takes in {"job", "jobs", "several", "files", "file"}:
        return lookup("jobs")
    if takes == "runs":
        return lookup("jobs") if before else ("show", "note", "tag", "untag")
    return {
        "shell": tuple(SCRIPTS),
        "model": ACTS,
        "env": ENV_ACTS,
        "app": APP_ACTS,
        "language": languages(),
    }.get(takes, ())


def _flags(options: Sequence[Option], words: Sequence[str], current: str, lookup: Lookup) -> list[str]:
    known = {flag: o for o in options for flag in o.flags}
    flag, equals, value = current.partition("=")
    if equals and flag in known:
        return [f"{flag}={v}" for v in _fitting(_values(known[flag], lookup), value)]
    used = {known[w].name for w in words if w in known and not known[w].many}
    return _fitting([o.flag for o in options if o.name not in used], current)


def _values(option: Option, lookup: Lookup) -> Iterable[str]:
    if option.choices in {"runtimes", "tenants"}:
        return lookup(option.choices)
    return option.choices.split()


def _fitting(words: Iterable[str], start: str) -> list[str]:
    return sorted({w for w in words if w.startswith(start)})


def references(jobs: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the names, and where one has several runs each of them."""
    runs: dict[str, list[int]] = {}
    for j in jobs:
        runs.setdefault(str(j["name"]), []).append(int(j.get("run") or 1))
    return [*runs, *(f"{name}@{run}" for name, all_ in runs.items() if max(all_) > 1 for run in all_)]


class Remembering:
    """Looks names up at the service, quickly or not at all: a tab key must never hang."""

    def __init__(
        self,
        client: Callable[[], Client] = lambda: Client.from_env(timeout=1.5, patience=0.0),
        seconds: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._seconds = seconds
        self._clock = clock
        self._known: dict[str, tuple[float, list[str]]] = {}

    def __call__(self, kind: str) -> list[str]:
        """Return names of jobs, datasets, tenants or runtimes; nothing where the service does not answer."""
        at, names = self._known.get(kind, (-self._seconds, []))
        if self._clock() - at < self._seconds:
            return names
        try:
            names = self._ask(kind)
        except MLPError:
            names = list(RUNTIMES) if kind == "runtimes" else []
        self._known[kind] = (self._clock(), names)
        return names

    def _ask(self, kind: str) -> list[str]:
        client = self._client()
        if kind == "jobs":
            return references(client.jobs())
        if kind == "datasets":
            return [str(d["name"]) for d in client.datasets()]
        if kind == "tenants":
            return [str(t["name"]) for t in client.tenants()]
        return [str(r["name"]) if isinstance(r, dict) else str(r) for r in client.runtimes()]

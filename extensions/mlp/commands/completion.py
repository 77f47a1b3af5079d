"""Completion of verbs, options, runtimes, tenants and job names: for IPython's tab key and for shells."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from mlp.client.rest import Client
from mlp.errors import UsageError
from mlp.grammar.forms import acts
from mlp.grammar.job_options import Option
from mlp.grammar.verbs import MAGIC, TAKES, find, languages, options_of, verbs_of
from mlp.terms import RUNTIMES

PROGRAMS = (".py", ".ipynb", ".sh")
MOST_FILES = 10_000
"""Safety: entries of a directory that are looked at for one tab key."""
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
    """Return the possible words instead of `current` after `words` (the verb first)."""
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
    # a shell knows files by itself
    files = _scripts(current) if surface == MAGIC and verb.takes in {"script", "sweep"} else []
    return [*files, *_fitting(_names(verb.takes, words[1:], lookup), current)]


def _scripts(current: str) -> list[str]:
    """Return the programs, and the directories on the way to one, that a path may become."""
    folder, slash, start = current.rpartition("/")
    found = []
    try:
        with os.scandir(f"{folder}{slash}" or ".") as entries:
            for entry in islice(entries, MOST_FILES):
                if not entry.name.startswith(start) or (entry.name.startswith(".") and not start):
                    continue
                if entry.is_dir():
                    found.append(f"{folder}{slash}{entry.name}/")
                elif entry.name.endswith(PROGRAMS):
                    found.append(f"{folder}{slash}{entry.name}")
    except OSError:
        return []
    return sorted(found)


def _names(takes: str, before: Sequence[str], lookup: Lookup) -> Iterable[str]:
    if not before and (found := acts(TAKES[takes]())):
        return found
    if takes == "data":
        # what is pushed or added, and where to is pulled, is no dataset: files here a shell knows by itself
        named = {"ls": 1, "pull": 1, "push": 2, "add": 2, "sync": 1}.get(before[0])
        return lookup("datasets") if named in {None, len(before)} else ()
    if takes in {"job", "jobs", "several", "files", "file", "runs"} or (takes == "note" and not before):
        return lookup("jobs")
    if takes in {"sweep", "sweeps"}:
        return lookup("sweeps")
    return {"shell": tuple(SCRIPTS), "language": languages()}.get(takes, ())


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
    """Looks names up at the service, quickly or not at all: a tab key must never hang.

    What takes longer than `wait` seconds is there at the next key: it is asked for beside who waits, once at a time for each kind.
    """

    def __init__(
        self,
        client: Callable[[], Client] = lambda: Client.from_env(timeout=1.5, patience=0.0),
        seconds: float = 5.0,
        wait: float = 0.3,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._seconds = seconds
        self._wait = wait
        self._clock = clock
        self._known: dict[str, tuple[float, list[str]]] = {}
        self._asking: dict[str, threading.Thread] = {}

    def __call__(self, kind: str) -> list[str]:
        """Return names of jobs, sweeps, datasets, tenants or runtimes, or the last known ones.

        The last known ones are returned if the service does not answer in time.
        """
        at, names = self._known.get(kind, (-self._seconds, []))
        if self._clock() - at < self._seconds:
            return names
        asking = self._asking.get(kind)
        if asking is None or not asking.is_alive():
            asking = threading.Thread(target=self._look, args=(kind,), name=f"mlp names {kind}", daemon=True)
            self._asking[kind] = asking
            asking.start()
        asking.join(self._wait)
        return self._known.get(kind, (0.0, _without_asking(kind)))[1]

    def _look(self, kind: str) -> None:
        try:
            names = self._ask(kind)
        except Exception:  # noqa: BLE001 - a thread's error would be written into the notebook
            names = _without_asking(kind)
        self._known[kind] = (self._clock(), names)

    def _ask(self, kind: str) -> list[str]:
        client = self._client()
        if kind == "jobs":
            return references(client.jobs())
        if kind == "sweeps":
            return references(client.sweeps())
        if kind == "datasets":
            return [str(d["name"]) for d in client.datasets()]
        if kind == "tenants":
            return [str(t["name"]) for t in client.tenants()]
        return [str(r["name"]) if isinstance(r, dict) else str(r) for r in client.runtimes()]


def _without_asking(kind: str) -> list[str]:
    return list(RUNTIMES) if kind == "runtimes" else []

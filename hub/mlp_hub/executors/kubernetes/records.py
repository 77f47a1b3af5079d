"""Records of ranks about themselves on the volume: their start and their end.

A job's program can write to the directory. So nothing in it is followed as a link, and none of it
is trusted to have the right type or size, or to be printable text.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from json import JSONDecodeError
from typing import Any

from mlp_hub.domain.jobs.job import Cause
from mlp_hub.domain.text import one_line, readable
from mlp_hub.safe_path import DirHandle
from mlp_hub.sandbox.shim.logs.losses import parsed

_MOST = 64 << 10
"""Safety: bytes of one record: its tail of error output is bounded, and it is its user's to write."""
_CAUSES = frozenset(cause.value for cause in Cause)
_MOST_USE = 2 << 10
"""Safety: bytes of a rank's report of its use, for the same reason."""
_MOST_DIGITS = 20
"""Safety: bytes of a rank's number of lost lines, for the same reason."""
_MOST_CORES, _MOST_MIB = 1e5, 1 << 40
"""Safety: more than any rank can use: it is the rank that says so."""
_LATEST = 1e11
"""Safety: seconds since the epoch that are a time at all."""
_DEEP = 4
"""Safety: sentences within each other of a reason that a rank tells: it is the rank that says so."""
_HOLE = re.compile(r"\{([a-z_]{1,40})\}")
"""Safety: place in a sentence, which has a name only: a format could ask for gigabytes of blanks."""
_BRACE = re.compile("[{}]")
_STATES = ("running", "finished", "failed", "stopped")


@dataclass(frozen=True, slots=True)
class RankUse:
    """Report of a rank's use, now and so far: cores and MiB, as `RankStatus` has them.

    `gpu` is the most that an engine of its GPUs did in a minute, from 0 to 1, after `gpu_looks` looks at them.
    """

    cpu: float | None = None
    ram: int | None = None
    cpu_mean: float | None = None
    cpu_peak: float | None = None
    ram_mean: int | None = None
    ram_peak: int | None = None
    gpu: float | None = None
    gpu_looks: int = 0


@dataclass(frozen=True, slots=True)
class RankRecord:
    """Record of a rank about itself.

    `state` is running, finished, failed or stopped. `asked`: it was asked to end.
    """

    state: str = "running"
    asked: bool = False
    started_at: float | None = None
    finished_at: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    cause: Cause | None = None
    message: str = ""
    said: dict[str, Any] | None = None
    tail: str = ""
    hint: str | None = None
    lost_lines: int = 0
    container_at: float | None = None
    first_line_at: float | None = None
    use: RankUse | None = None
    asked_at: float | None = None
    killed: bool = False  # not all of it had ended within the grace
    hint_limit: int = 0
    memory_kills: int = 0

    def between(self, first: float, last: float) -> RankRecord:
        """Return it with no time outside of these: it is the rank that says when, and what it used is counted by that."""
        times = {name: getattr(self, name) for name in _TIMES}
        return replace(
            self, **{name: min(max(at, first), last) for name, at in times.items() if at is not None}
        )


RUNNING = RankRecord()
_TIMES = ("started_at", "finished_at", "container_at", "first_line_at", "asked_at")


def read(workspace: str, attempt: str, ranks: int) -> Mapping[int, RankRecord]:
    """Return the records that these ranks of an attempt have left in a run's directory."""
    found: dict[int, RankRecord] = {}
    try:
        with DirHandle.at(workspace) as outer, outer.inside("log") as log:
            for rank in range(ranks):
                record = _read(log, f"{attempt}.{rank}.json")
                if record is not None and record.state == "running":
                    record = _with_use(record, _read_json(log, f"{attempt}.{rank}.use", _MOST_USE))
                if record is not None:
                    found[rank] = record
    except OSError:
        return found  # there is no log yet
    return found


def lost_lines(workspace: str, attempt: str, ranks: Iterable[int]) -> int:
    """Return how many lines ranks lost that were killed before they recorded their end, as far as they noted it down."""
    count = 0
    with contextlib.suppress(OSError), DirHandle.at(workspace) as outer, outer.inside("log") as log:
        for rank in ranks:
            with contextlib.suppress(OSError, ValueError), log.read(f"{attempt}.{rank}.lost") as file:
                count += _whole(parsed(file.read(_MOST_DIGITS))) or 0
    return count


def _read_json(log: DirHandle, name: str, most: int) -> dict[str, Any] | None:
    try:
        with log.read(name) as file:
            content = json.loads(file.read(most))
    except (OSError, JSONDecodeError, UnicodeDecodeError, RecursionError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def _with_use(record: RankRecord, content: dict[str, Any] | None) -> RankRecord:
    if content is None:
        return record
    cores = (_cores(content.get(name)) for name in ("cpu", "cpu_mean", "cpu_peak"))
    cpu, cpu_mean, cpu_peak = cores
    ram, ram_mean, ram_peak = (_mib(content.get(name)) for name in ("ram", "ram_mean", "ram_peak"))
    percent, looks = _number(content.get("gpu")), _whole(content.get("gpu_looks")) or 0
    gpu = None if percent is None else min(percent, 100.0) / 100
    use = RankUse(cpu, ram, cpu_mean, cpu_peak, ram_mean, ram_peak, gpu, looks)
    said = None if use == RankUse() else use
    return replace(record, use=said, first_line_at=_number(content.get("first_line_at")))


def _read(log: DirHandle, name: str) -> RankRecord | None:
    content = _read_json(log, name, _MOST)
    if content is None:
        return None
    cause, said, state = content.get("cause"), content.get("said"), content.get("state")
    if state not in _STATES:
        return None  # it waits for its peers: its program has not begun
    record = RankRecord(
        state,
        content.get("asked") is True,
        _number(content.get("started_at")),
        _number(content.get("finished_at")),
        _whole(content.get("exit_code")),
        _whole(content.get("signal")),
        Cause(cause) if cause in _CAUSES else None,
        one_line(_text(content.get("message"))),
        _sentence(said),
        readable(_text(content.get("tail"))),
        one_line(_text(content.get("hint"))) or None,
        _whole(content.get("lost_lines")) or 0,
        _number(content.get("container_at")),
        asked_at=_number(content.get("asked_at")),
        killed=content.get("killed") is True,
        hint_limit=_whole(content.get("hint_limit")) or 0,
        memory_kills=_whole(content.get("memory_kills")) or 0,
    )
    return _with_use(record, content)


def _number(value: Any) -> float | None:
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LATEST
    return float(value) if good else None


def _cores(value: Any) -> float | None:
    number = _number(value)
    return number if number is not None and 0 <= number <= _MOST_CORES else None


def _mib(value: Any) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value <= _MOST_MIB else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31 else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _sentence(content: Any, deep: int = _DEEP) -> dict[str, Any] | None:
    """Return a sentence as data where it is one that ranks tell: a template, and text, numbers and such sentences to fill in."""
    if not isinstance(content, dict) or not deep or not content.keys() <= {"id", "args"}:
        return None
    template, given = content.get("id"), content.get("args", {})
    if not isinstance(template, str) or not isinstance(given, dict):
        return None
    template, args = one_line(template), {name: _filling(value, deep) for name, value in given.items()}
    holes = set(_HOLE.findall(template))
    if (
        not template
        or holes != args.keys()
        or None in args.values()
        or _BRACE.search(_HOLE.sub("", template))
    ):
        return None
    return {"id": template, "args": args}


def _filling(value: Any, deep: int) -> Any:
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, dict):
        return _sentence(value, deep - 1)
    return _whole(value) if isinstance(value, int) else _number(value)

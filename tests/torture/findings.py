"""Violations: printed when they are found, with all that is needed to look into them kept in a directory."""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Violation:
    """Something that must not be: what kind of, in which words, of which job (user/name; empty: of the hub)."""

    kind: str
    text: str
    job: str = ""


class Findings:
    """All violations of a run, each in a directory of its own below `kept`."""

    def __init__(self, seed: str, kept: Path) -> None:
        self.seed = seed
        self.kept = kept
        self.found: list[Violation] = []
        self.round = 0
        self._lock = threading.Lock()
        self._seen: Counter[tuple[int, str]] = Counter()

    def add(self, one: Violation, evidence: Mapping[str, Any] | None = None, *copies: Path) -> None:
        """Print it, and keep the evidence (as JSON) and copies of files or directories; of many alike a few."""
        with self._lock:
            self.found.append(one)
            self._seen[self.round, one.kind] += 1
            count = self._seen[self.round, one.kind]
            if count > 5:
                return
            place = self.kept / f"{len(self.found):03}-{one.kind}"
            place.mkdir(parents=True, exist_ok=True)
        stamp = time.strftime("%H:%M:%S")
        head = f"VIOLATION {one.kind} seed {self.seed} round {self.round} {one.job}".rstrip()
        sys.stdout.write(f"  {stamp} {head}: {one.text}\n      kept in {place}\n")
        sys.stdout.flush()
        (place / "violation.txt").write_text(f"{stamp} {head}\n{one.text}\n")
        for name, what in (evidence or {}).items():
            (place / f"{name}.json").write_text(json.dumps(what, indent=1, default=_plain))
        for path in copies:
            if path.is_dir():
                shutil.copytree(path, place / path.name, dirs_exist_ok=True, ignore_dangling_symlinks=True)
            elif path.exists():
                shutil.copy(path, place / path.name)

    def by_kind(self) -> Counter[str]:
        """Count them by kind."""
        return Counter(v.kind for v in self.found)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return repr(value)

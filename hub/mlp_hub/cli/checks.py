"""What a check of the doctor finds."""

from __future__ import annotations

from dataclasses import dataclass

OK = "ok"
WARN = "warn"  # works, with less than there could be
FAIL = "fail"  # something the hub needs does not work


@dataclass(frozen=True, slots=True)
class Check:
    """One finding: `status` is ok, warn or fail; `remedy` says what to do unless it is ok."""

    name: str
    status: str
    found: str
    remedy: str = ""

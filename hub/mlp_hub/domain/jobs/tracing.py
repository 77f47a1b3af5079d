"""Ids of a run's trace, in the format of W3C Trace Context.

They are derived from the run's uid, and are not stored. So each attempt, and a service after its restart, gives the same ones,
and a span that is exported twice is the same span.
"""

from __future__ import annotations

import hashlib

RUN = "run"
"""Name of the root span: the whole run, from its submission to its end."""


def trace_id(uid: str) -> str:
    """Return the trace id of a run: 32 hexadecimal digits, not all zero."""
    return _hex(f"mlp-hub trace {uid}", 16)


def span_id(uid: str, stage: str) -> str:
    """Return the id of a run's span for a stage, such as `queued-1`: 16 hexadecimal digits, not all zero."""
    return _hex(f"mlp-hub span {uid} {stage}", 8)


def traceparent(uid: str) -> str:
    """Return the value of `TRACEPARENT` for the ranks of a run; its parent is the span of the run.

    It is marked as sampled: programs that trace follow the mark of their parent, and without it would export nothing.
    """
    return f"00-{trace_id(uid)}-{span_id(uid, RUN)}-01"


def _hex(text: str, size: int) -> str:
    made = hashlib.sha256(text.encode()).digest()[:size]
    return made.hex() if any(made) else "1".zfill(2 * size)

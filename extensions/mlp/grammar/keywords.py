"""Options as keyword arguments of Python's functions, by the same tables."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlp.grammar.job_options import Option


def parse(options: Mapping[str, Any], table: Sequence[Option], function: str) -> dict[str, Any]:
    """Parse Python's keyword options by the table; raises TypeError for one that is not in it."""
    known = {o.name: o for o in table}
    for key in options:
        if key not in known:
            raise TypeError(f"{function}() has no option {key!r}; it has: {', '.join(known)}")
    return {key: known[key].value(value) for key, value in options.items() if value is not None}


def describe(function: Callable[..., Any], summary: str, table: Sequence[Option]) -> None:
    """Give a function the signature and the help of the option table."""
    fixed = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
    made = [inspect.Parameter(o.name, inspect.Parameter.KEYWORD_ONLY, default=o.default) for o in table]
    function.__signature__ = inspect.Signature([*fixed, *made])  # type: ignore[attr-defined]
    rows = [f"    {o.name}: {o.help} (default: {o.shown_default or o.default})" for o in table]
    function.__doc__ = "\n".join([summary, "", *rows])

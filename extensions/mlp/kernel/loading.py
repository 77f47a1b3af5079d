"""Content of `%load_ext mlp` in a notebook: names alone; their code is loaded at the first use."""

from __future__ import annotations

from functools import cache
from typing import Any


def load(ipython: Any) -> None:
    """Register the magics and their completion."""

    def mlp(line: str, cell: str | None = None) -> Any:
        """MLP Hub: submit, watch and steer jobs. `%mlp` alone shows help with examples."""
        from mlp.kernel.magics import MLPMagics  # noqa: PLC0415 - most notebooks load the extension, few use it at once

        ipython.register_magics(MLPMagics)  # from now on these are the magics
        magic = ipython.find_line_magic("mlp")
        return magic(line) if cell is None else magic(line, cell)

    ipython.register_magic_function(mlp, magic_kind="line_cell", magic_name="mlp")
    if ipython.Completer is not None:
        ipython.Completer.custom_matchers.append(completer())


def completer() -> Any:
    """Return IPython's matcher for lines that begin with `%mlp` or `%%mlp`; Python's own words are left out there."""
    from IPython.core.completer import SimpleCompletion, context_matcher  # noqa: PLC0415 - slow to import

    @cache
    def looked_up() -> Any:
        from mlp.commands.completion import Remembering  # noqa: PLC0415 - as above

        return Remembering()

    @context_matcher(identifier="mlp", priority=1000)  # type: ignore[untyped-decorator]
    def match(context: Any) -> dict[str, Any]:
        before = str(context.text_until_cursor)
        words = before.split()
        if words[:1] not in (["%mlp"], ["%%mlp"]) or before == words[0]:
            return {"completions": []}
        from mlp.commands.completion import complete  # noqa: PLC0415 - as above
        from mlp.errors import MLPError  # noqa: PLC0415 - as above
        from mlp.grammar.verbs import MAGIC  # noqa: PLC0415 - as above

        current = "" if before[-1:].isspace() else words.pop()
        try:
            found = complete(words[1:], current, MAGIC, looked_up())
        except (MLPError, IndexError):
            found = []
        return {
            "completions": [SimpleCompletion(f, type="mlp") for f in found],
            "matched_fragment": current,
            "suppress": True,
        }

    return match

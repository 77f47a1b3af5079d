"""Writes the reference page of the settings from their table: `python -m mlp_hub.cli.reference`."""

from __future__ import annotations

import sys

from mlp_hub.settings import table

_HEAD = """# Settings

Each is an environment variable, or a line `c.MLPHub.name = value` in the traitlets file that `MLP_CONFIG` names; the
variable wins. An unknown name in the file stops the start and says which was meant. `mlp-hub up` takes changes over
and restarts only what they concern.

| variable | in the file | default | meaning |
|---|---|---|---|
"""


def settings_page() -> str:
    """Return the page as Markdown."""
    lines = []
    for row in table():
        default = f"`{row.default}`{f' {row.unit}' if row.unit else ''}" if row.default else ""
        in_file = f"`{row.name}`" if row.name != "config" else ""
        unit = f" In {row.unit}." if row.unit and not row.default else ""
        lines.append(f"| `{row.variable}` | {in_file} | {default} | {row.doc}{unit} |\n")
    return _HEAD + "".join(lines)


if __name__ == "__main__":
    sys.stdout.write(settings_page())

"""Runs the commands of a page of the documentation, and looks for the output that it promises."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^<!-- (run|file|prints)(?:: (\S+))? -->\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
KEEP = "export -p > .environment"


def shell(text: str) -> list[str]:
    """Run a block with what earlier ones exported; exports go on to the next."""
    script = f"set -euo pipefail\n[ ! -e .environment ] || . ./.environment\n{text}\n{KEEP}\n"
    return ["bash", "-c", script]


def python(text: str) -> list[str]:
    return ["bash", "-c", '. ./.environment\nexec python -c "$1"', "python", text]


def do_as_told(page: str, cwd: Path, env: dict[str, str]) -> None:
    """Run every block of a page in its order; the first that does something else than it says fails."""
    said = (DOCS / page).read_text()
    blocks = BLOCK.findall(said)
    assert len(blocks) == len(re.findall("^<!-- ", said, re.MULTILINE)), "a block that nobody runs"
    printed = ""
    for what, detail, text in blocks:
        if what == "file":
            (cwd / detail).write_text(text)
        elif what == "prints":
            for line in text.splitlines():
                # what comes behind the dots is another time each time
                assert line.partition("…")[0] in printed, f"{line!r} is not in:\n{printed}"
        else:
            command = {"shell": shell, "python": python}[detail](text)
            done = subprocess.run(
                command, cwd=cwd, env=env, capture_output=True, text=True, timeout=180, check=False
            )
            printed = done.stdout
            assert done.returncode == 0, f"{text}\nended with {done.returncode}:\n{printed}\n{done.stderr}"

"""What the quickstart tells to type works, and prints what it says."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from live_hub import BIN, LiveHub

PAGE = Path(__file__).parents[3] / "docs" / "quickstart.md"
BLOCK = re.compile(r"^<!-- (run|file|prints)(?:: (\S+))? -->\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
KEEP = "export -p > .environment"


def shell(text: str) -> list[str]:
    """Run a block with what earlier ones exported; exports go on to the next."""
    script = f"set -euo pipefail\n[ ! -e .environment ] || . ./.environment\n{text}\n{KEEP}\n"
    return ["bash", "-c", script]


def python(text: str) -> list[str]:
    return ["bash", "-c", '. ./.environment\nexec python -c "$1"', "python", text]


def test_every_block_of_the_quickstart_does_what_it_says(hub: LiveHub, tmp_path: Path) -> None:
    env = {**hub.env, "PATH": f"{BIN}:{hub.env['PATH']}", "HOME": str(tmp_path)}
    env.pop("XDG_CONFIG_HOME", None)
    blocks = BLOCK.findall(PAGE.read_text())
    assert len(blocks) == len(re.findall("^<!-- ", PAGE.read_text(), re.MULTILINE)), (
        "a block that nobody runs"
    )
    printed = ""
    for what, detail, text in blocks:
        if what == "file":
            (tmp_path / detail).write_text(text)
        elif what == "prints":
            for line in text.splitlines():
                # what comes behind the dots is another time each time
                assert line.partition("…")[0] in printed, f"{line!r} is not in:\n{printed}"
        else:
            command = {"shell": shell, "python": python}[detail](text)
            done = subprocess.run(
                command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=180, check=False
            )
            printed = done.stdout
            assert done.returncode == 0, f"{text}\nended with {done.returncode}:\n{printed}\n{done.stderr}"
    hub.wait_phase("mia", "long", "cancelled")

"""Commands print JSON that a terminal shows, and does not obey."""

from __future__ import annotations

import re
from pathlib import Path

from mlp_hub.cli import commands

INTO_FILES = {"audit_files.py": "the same bytes as over REST"}


def test_each_command_escapes_the_json_that_it_prints() -> None:
    assert commands.__file__ is not None
    for file in sorted(Path(commands.__file__).parent.glob("*.py")):
        if file.name in INTO_FILES:
            continue
        for line in file.read_text().splitlines():
            if "ensure_ascii=False" in line and "write(" in line:
                assert re.search(r"escaped(_json)?\(", line), f"{file.name}: {line.strip()}"

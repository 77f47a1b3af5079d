"""The samples train as they are in everybody's home, to the accuracy that they are to have.

`test_story.py` runs them from their cells, with fewer epochs.
"""

from __future__ import annotations

import json
import shlex

import pytest

from mlp_spawner import server
from support.hubs.live_hub import LiveHub

PATIENT = 900.0
"""Seconds that a job may take which really trains; it bounds only tests that fail."""


def programs() -> dict[str, tuple[dict[str, object], str]]:
    """Return what the cells of the samples submit: by its name the options and the program."""
    found: dict[str, tuple[dict[str, object], str]] = {}
    for path in server.samples():
        if not path.name.startswith(("01-", "02-")):
            continue
        for cell in json.loads(path.read_text())["cells"]:
            first, _, program = "".join(cell["source"]).partition("\n")
            if cell["cell_type"] != "code" or not first.startswith("%%mlp submit"):
                continue
            words = shlex.split(first)[2:]
            options = {name.removeprefix("--"): value for name, value in zip(*[iter(words)] * 2, strict=True)}
            shape = {
                name: float(options[name]) for name in ("cpu", "ram", "workers", "ps") if name in options
            }
            whole = {name: int(value) for name, value in shape.items() if name != "cpu"}
            found[options["name"]] = ({"runtime": options["runtime"], **shape, **whole}, program)
    return found


@pytest.mark.whole
@pytest.mark.parametrize("name", ["digits", "digits-tf", "digits-ps"])
def test_each_sample_trains_to_its_expected_accuracy(hub: LiveHub, name: str) -> None:
    options, program = programs()[name]
    hub.submit("admin", f"{name}-whole", program, **options)
    hub.wait_phase("admin", f"{name}-whole", "finished", timeout=PATIENT)
    points = hub.points("admin", f"{name}-whole")
    assert max(p["values"]["accuracy"] for p in points if "accuracy" in p["values"]) > 0.97

"""Which directories the Python of a sandbox needs, as its environment lies when it is asked."""

from __future__ import annotations

import sys
from pathlib import Path

from mlp_hub.sandbox import environment_binds


def test_an_environment_that_took_the_place_of_another_is_bound_from_then_on(tmp_path: Path) -> None:
    """An installer moves the link while the hub runs, and removes what nothing runs from."""
    link = tmp_path / ".venv"
    places = [tmp_path / f".venv-0000000{n}" for n in "ab"]
    found = []
    for place in places:
        (place / "bin").mkdir(parents=True)
        (place / "bin" / "python").symlink_to(sys.executable)
        (place / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).parent}\n")
        link.unlink(missing_ok=True)
        link.symlink_to(place.name)
        found.append({bind.src for bind in environment_binds(str(link / "bin" / "python"))})
    for place, sources in zip(places, found, strict=True):
        assert {str(link), str(place)} <= sources
    assert str(places[0]) not in found[1]

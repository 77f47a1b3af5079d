"""Gathers in the folder that is named what images are made of: uv, the wheel, and for each image which packages it has.

The layers of packages are made of these lists, without all else of pyproject.toml: only with another list is one made anew.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = {
    "service": ("service", "postgresql", "kubernetes"),
    "hub": ("hub", "spawner"),
    "mpi": ("mpi",),
    "tf": ("tf",),
    "notebook": ("notebook",),
}
"""The extras of the project that an image has besides those of the image that it begins with."""


def wanted(known: dict[str, list[str]], extras: tuple[str, ...]) -> Iterator[str]:
    """List the requirements of extras, with those of the extras that they name."""
    for line in (line for extra in extras for line in known[extra]):
        if own := re.fullmatch(r"mlp-hub\[(.*)\]", line):
            yield from wanted(known, tuple(own.group(1).split(",")))
        else:
            yield line


def main(folder: Path) -> None:
    """Write the files."""
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    folder.mkdir(parents=True, exist_ok=True)
    for image, extras in EXTRAS.items():
        lines = sorted(set(wanted(known, extras)))
        (folder / f"{image}.txt").write_text("".join(f"{line}\n" for line in lines))
    shutil.copyfile(ROOT / "constraints.txt", folder / "constraints.txt")
    uv = shutil.which("uv", path=f"{ROOT / '.venv' / 'bin'}:{os.environ.get('PATH', '')}")
    wheels = list((ROOT / "build" / "wheel").glob("*.whl"))
    if uv is None or len(wheels) != 1:
        sys.exit("Images are made with uv of the wheel, and they are not here: make install")
    for old in folder.glob("*.whl"):
        old.unlink()
    for path in (Path(uv), wheels[0]):
        shutil.copy2(path, folder / path.name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Which directories a Python environment needs inside a sandbox."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from pathlib import Path

from mlp_hub.sandbox.spec import Bind

_SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/sbin")
_ASK = """
import json, sys, sysconfig
print(json.dumps({"prefix": sys.prefix, "base": sys.base_prefix, "exec": sys.exec_prefix,
                  "real": sys._base_executable, "path": sys.path,
                  "site": [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]}))
"""


def environment_binds(python: str) -> tuple[Bind, ...]:
    """List what the environment of this interpreter consists of, read-only, at the same paths inside.

    That is its prefix, the base interpreter's prefix where it is not below /usr, and the directories of
    editable installs. Remembered for as long as the environment lies where it does: a link may lead to another one by now. Raises
    `OSError` or `subprocess.SubprocessError` when the interpreter cannot be asked.
    """
    return _binds(python, os.path.realpath(Path(python).parent.parent))


@functools.cache
def _binds(python: str, _place: str) -> tuple[Bind, ...]:
    answer = json.loads(
        subprocess.run([python, "-c", _ASK], capture_output=True, check=True, env=_clean()).stdout
    )
    wanted = [
        answer["prefix"],
        answer["base"],
        answer["exec"],
        str(Path(answer["real"]).resolve().parent.parent),
    ]
    wanted += [entry for entry in answer["path"] if os.path.isdir(entry)]  # noqa: PTH112
    for site in dict.fromkeys(answer["site"]):
        wanted += _editable(Path(site))
    return tuple(Bind(path, path) for path in _outermost(wanted))


def _clean() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}


def _editable(site: Path) -> list[str]:
    """List directories that .pth files of editable installs name."""
    out = []
    for file in sorted(site.glob("*.pth")):
        for line in file.read_text(errors="replace").splitlines():
            entry = line.strip()
            if entry.startswith("/") and Path(entry).is_dir():
                out.append(entry)
    return out


def _outermost(paths: list[str]) -> list[str]:
    """Drop what is below another one or below the system's own directories, and keep the order.

    Links on the way are resolved too, so that an interpreter that is a link finds its target.
    """
    every = [os.path.normpath(path) for path in paths]
    every += [os.path.realpath(path) for path in paths]
    kept: list[str] = []
    for path in sorted(set(every), key=lambda path: (len(path), path)):
        if path != "/" and not any(_below(path, other) for other in (*_SYSTEM, *kept)):
            kept.append(path)
    return kept


def _below(path: str, other: str) -> bool:
    return path == other or path.startswith(other + "/")

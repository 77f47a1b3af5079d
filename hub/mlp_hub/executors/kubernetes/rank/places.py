"""Places in commands that only a pod can fill in: where its interpreter lies, and whether that has a module."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterable

BIN = "\x1fbin\x1f"
PYTHON = BIN + "/python3"
HERE = os.environ.get("MLP_RANK_FILES", "/run/mlp")
BY_MODULE = "\x1fmodule\x1f"


def interpreter() -> str:
    """Return the interpreter that programs are run by: the one that the image finds by its PATH, which runs this too."""
    return sys.executable


def fill(text: str, python: str) -> str:
    """Fill in where programs of the interpreter's environment lie."""
    return text.replace(BIN, os.path.dirname(python))


def command(words: Iterable[str], python: str) -> list[str]:
    """Fill in a command; a program is run by a module where its interpreter has that."""
    out: list[str] = []
    for word in words:
        if not word.startswith(BY_MODULE):
            out.append(fill(word, python))
        elif word == BY_MODULE + "python" or has(word[len(BY_MODULE) :], python):
            out.append(f"{HERE}/mlp_hub/sandbox/shim/programs/by_{word[len(BY_MODULE) :]}.py")
    return out


def has(module: str, python: str) -> bool:
    """Whether an interpreter's environment has a package; nothing is imported."""
    prefix = os.path.dirname(os.path.dirname(python))
    return bool(glob.glob(f"{prefix}/lib/python3*/*-packages/{module}/__init__.py"))

"""Kernels by which notebooks run on environments: files that Jupyter reads, beside the environments that they are of.

Every member of a team makes environments, and Jupyter looks here before it looks anywhere else. So what it knows a kernel by has a
prefix: an environment called python3 is none that notebooks open with unless their user chose it.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from mlp_hub.domain.runtime.environment import kernel_of
from mlp_hub.domain.stored.storage import KERNELS
from mlp_hub.executors.shared_volume.trees.removal import remove_directory_in
from mlp_hub.safe_path import DirHandle
from mlp_hub.sandbox import ENVIRONMENTS_AT

_KERNELS, _KERNEL = "kernels", "kernel.json"
LOGO = "logo-svg.svg"
"""Given: the name by which Jupyter knows the picture of a kernel."""
_PICTURE = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64">
<path d="M32 5 56 18v28L32 59 8 46V18Z" fill="#3b73b9"/><path d="M32 5 56 18 32 32 8 18Z" fill="#6c9bd4"/><path d="M32 32v27L8 46V18Z" fill="#2f5f9e"/>
</svg>
"""
"""Picture of a box that a launcher shows for an environment, next to the platform's Python with its logo."""


def offer(shelf: Path, name: str, directory: str) -> None:
    """Have the kernel of the environment of this name, which is in a directory of the shelf."""
    with (
        DirHandle.at(shelf) as top,
        top.inside(KERNELS, make=0o755) as path,
        path.inside(_KERNELS, make=0o755) as kernels,
        kernels.inside(kernel_of(name), make=0o755) as kernel,
    ):
        for each in (path, kernels, kernel):
            os.fchmod(each.fd, 0o755)
        described = json.dumps(_kernel(name, f"{ENVIRONMENTS_AT}/{directory}"), indent=1)
        for file_name, text in ((LOGO, _PICTURE), (_KERNEL, described)):
            remove_directory_in(kernel, file_name)
            with kernel.create(file_name, 0o644) as file:
                file.write(text.encode())


def withdraw(shelf: Path, name: str) -> None:
    """Have no kernel of the environment of this name any more."""
    with (
        contextlib.suppress(FileNotFoundError),
        DirHandle.at(shelf) as top,
        top.deep_inside((KERNELS, _KERNELS)) as kernels,
    ):
        remove_directory_in(kernels, kernel_of(name))


def _kernel(name: str, top: str) -> dict[str, object]:
    """Return a kernel as Jupyter reads it; the module that it runs is the platform's, beside the environment's packages.

    It loads nothing of the directory that it is started in (`mlp.beside`).
    """
    return {
        "argv": [f"{top}/bin/python", "-P", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": f"Python ({name})",
        "language": "python",
        "env": {"PATH": f"{top}/bin:${{PATH}}", "VIRTUAL_ENV": top},
        "metadata": {"debugger": True},
    }

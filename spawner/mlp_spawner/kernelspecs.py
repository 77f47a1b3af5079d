"""Kernels of a server's own Python, started so that they load nothing of the directory that they are started in."""

from __future__ import annotations

import sys
from typing import Any

from jupyter_client.kernelspec import KernelSpecManager

_MODULE = ["-m", "ipykernel_launcher"]
_OWN = {"python", "python3", f"python3.{sys.version_info.minor}", sys.executable}
_ENVIRONMENTS = "/mlp/env/"
"""Given: where the environments of a team are (`mlp_hub.sandbox`); kernels that an older hub wrote there lack `-P`."""


class SafeKernelSpecs(KernelSpecManager):
    """Finds kernels as Jupyter does. `mlp.beside` has modules beside a notebook found once a cell of it is run."""

    def get_kernel_spec(self, kernel_name: str) -> Any:
        """Return a kernel, with `-P` where it is of a Python that knows it."""
        found = super().get_kernel_spec(kernel_name)
        program = found.argv[0] if found.argv else ""
        if (program in _OWN or program.startswith(_ENVIRONMENTS)) and found.argv[1:3] == _MODULE:
            found.argv.insert(1, "-P")
        return found

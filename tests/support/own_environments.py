"""Python packages in an environment of their own, since they need other versions of what the hub has."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mlp-hub"


@dataclass(frozen=True)
class OwnEnvironment:
    """Packages in the cache of this user, below `name`, which has their version."""

    name: str
    packages: tuple[str, ...]

    @property
    def python(self) -> Path:
        """Python of the environment."""
        return CACHE / self.name / "bin" / "python"

    def fetch(self) -> Path:
        """Install it if it is missing; return its Python."""
        if self.python.is_file():
            return self.python
        CACHE.mkdir(parents=True, exist_ok=True)
        made = CACHE / f"{self.name}.{os.getpid()}"
        subprocess.run([sys.executable, "-m", "venv", str(made)], check=True)
        subprocess.run(
            [str(made / "bin" / "python"), "-m", "pip", "install", "-q", *self.packages], check=True
        )
        try:
            made.rename(CACHE / self.name)
        except OSError:  # another one was quicker
            shutil.rmtree(made)
        return self.python

    def main(self) -> None:
        """Install it for `make test-tools`, and report whether it was missing."""
        if not self.python.is_file():
            self.fetch()
            print("fetched")

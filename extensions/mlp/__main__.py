"""`python -m mlp`: the same as the command."""

from __future__ import annotations

import sys

from mlp.cli import main


def run() -> None:
    """Do what the command line says, and end with its status."""
    sys.exit(main())


if __name__ == "__main__":
    run()

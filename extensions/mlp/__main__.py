"""`python -m mlp`: the same as the command."""

from __future__ import annotations

import sys

from mlp.cli import main

if __name__ == "__main__":
    sys.exit(main())

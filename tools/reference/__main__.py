"""Write the reference pages: `PYTHONPATH=tools python -m reference docs/reference`."""

from __future__ import annotations

import sys

from reference.pages import main

main(sys.argv[1])

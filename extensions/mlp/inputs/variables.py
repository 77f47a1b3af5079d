"""Variables that a job was submitted with."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

VARIABLES = "NOTEBOOK_VARIABLES"
"""Variable of the environment that has them, as JSON."""


def variables(env: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return the variables sent with `--with`, inside a job.

    A script reads them this way; a cell has them as variables.
    """
    found = json.loads(env.get(VARIABLES, "{}"))
    return found if isinstance(found, dict) else {}

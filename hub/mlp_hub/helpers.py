"""How processes are started that take apart what strangers wrote: one mechanism for all of them.

A helper is a module with a `main()`, and where it needs them `prepare()`, which loads what it uses later, and `shown()`, the files it
still reads then. `mlp_hub.confined` runs both, gives up all rights, and calls `main()`; see there. Standard library only.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass

UIDS = 100_000
"""Contract: system uids that a hub which is root has, from its first on: users from the beginning, helpers from the end."""
OUTBOUND, LOOKING, COPYING, SIMULATING = 1, 2, 3, 4
"""Which of the last uids of the hub a helper has."""
_PASSED = ("PATH", "PYTHONPATH", "LANG", "TZ", "SSL_CERT_FILE")
"""Given: variables that a helper has; no credential and no proxy is among them."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """Limits of a helper.

    `uid`: the user that it becomes where the hub is root. `memory`: bytes of address space. `cpu_s`:
    seconds of processor time, 0 is any. `network`: whether it can reach other machines.
    """

    uid: int | None
    memory: int
    cpu_s: int = 0
    network: bool = False


def helper_uid(first: int | None, which: int) -> int | None:
    """Return the system uid of a helper of a hub whose users begin at `first`; None where the hub is not root."""
    return None if first is None else first + UIDS - which


def command(module: str, within: Confinement, *arguments: str) -> list[str]:
    """Return what to execute for a helper."""
    # -P: the working directory holds no modules of ours
    return [
        sys.executable, "-P", "-m", "mlp_hub.confined", json.dumps(asdict(within)), module, *arguments,
    ]  # fmt: skip


def environment() -> dict[str, str]:
    """Return the variables that a helper has."""
    return {name: os.environ[name] for name in _PASSED if name in os.environ}

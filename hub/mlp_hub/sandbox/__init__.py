"""Sandbox of each notebook server, job and app.

`launch` starts a small process, the shim, that outlives its starter. The shim makes the sandbox,
writes the logs, enforces the limits and leaves `state.json` and `exit.json` in the run directory.
From these files `inspect` returns the state, after a restart of the hub too.
"""

from mlp_hub.domain.resources import QUIET, thread_variables
from mlp_hub.domain.stored.storage import KERNELS
from mlp_hub.domain.text import one_line
from mlp_hub.safe_path import DirHandle
from mlp_hub.sandbox.capabilities import Capabilities, Missing, capabilities
from mlp_hub.sandbox.control import (
    Why,
    inspect,
    kill,
    launch,
    limit,
    ran_out,
    remove,
    remove_leftovers,
    signal,
    stop,
    why_stopped,
)
from mlp_hub.sandbox.environment import environment_binds
from mlp_hub.sandbox.errors import SandboxUnavailable
from mlp_hub.sandbox.groups import remove_forgotten
from mlp_hub.sandbox.homes import (
    DATASETS,
    ENVIRONMENTS,
    ENVIRONMENTS_AT,
    MODELS,
    SHELVES,
    ensure_home,
    open_environments,
    place_links,
    seen_at,
)
from mlp_hub.sandbox.spec import Bind, Limits, Link, RankPlan, SandboxSpec
from mlp_hub.sandbox.state import RankState, SandboxExit, SandboxPhase, SandboxState
from mlp_hub.shelves import ensure_stored, open_arriving, open_shelf

__all__ = [
    "DATASETS",
    "ENVIRONMENTS",
    "ENVIRONMENTS_AT",
    "KERNELS",
    "MODELS",
    "QUIET",
    "SHELVES",
    "Bind",
    "Capabilities",
    "DirHandle",
    "Limits",
    "Link",
    "Missing",
    "RankPlan",
    "RankState",
    "SandboxExit",
    "SandboxPhase",
    "SandboxSpec",
    "SandboxState",
    "SandboxUnavailable",
    "Why",
    "capabilities",
    "ensure_home",
    "ensure_stored",
    "environment_binds",
    "inspect",
    "kill",
    "launch",
    "limit",
    "one_line",
    "open_arriving",
    "open_environments",
    "open_shelf",
    "place_links",
    "ran_out",
    "remove",
    "remove_forgotten",
    "remove_leftovers",
    "seen_at",
    "signal",
    "stop",
    "thread_variables",
    "why_stopped",
]

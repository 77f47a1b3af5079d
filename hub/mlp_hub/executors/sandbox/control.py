"""Launch, inspect, signal, stop and remove sandboxes by their run directories."""

from __future__ import annotations

from mlp_hub.executors.sandbox.spec import SandboxSpec
from mlp_hub.executors.sandbox.state import SandboxState


def launch(spec: SandboxSpec, run_dir: str) -> None:
    """Start the sandbox unless this run directory ever started one; blocks for some 20 ms.

    Returns once its shim has claimed the run directory: from then on neither the caller's death nor a second
    call changes anything. Raises `SandboxUnavailable` where the machine allows no sandbox and `OSError` when
    the run directory cannot be written.
    """
    raise NotImplementedError


def inspect(run_dir: str) -> SandboxState:
    """Tell how the sandbox stands; cheap, some 0.1 ms."""
    raise NotImplementedError


def signal(run_dir: str, signum: int) -> int:
    """Send a signal to the program's main processes (each rank's, or the command's); return to how many."""
    raise NotImplementedError


def stop(run_dir: str, grace_s: float) -> None:
    """Ask the program to end (SIGTERM), kill it after the grace; returns at once, may be repeated.

    A shorter grace than an earlier call's wins.
    """
    raise NotImplementedError


def kill(run_dir: str) -> None:
    """End the sandbox now, whatever state its shim is in; returns when nothing of it lives any more."""
    raise NotImplementedError


def remove(run_dir: str) -> None:
    """Kill what is left and delete the run directory."""
    raise NotImplementedError

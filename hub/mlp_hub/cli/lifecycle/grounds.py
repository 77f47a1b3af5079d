"""Grounds for jobs and notebook servers, as `up` prepares them and `down` ends servers in them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlp_hub.cli.errors import CommandFailed, MachineFailure
from mlp_hub.cli.state import belonging
from mlp_hub.settings import Settings
from mlp_hub.settings.executor_kinds import Ground
from mlp_language.render import say, says

if TYPE_CHECKING:
    from mlp_hub.sandbox import Capabilities

    Probe = Callable[[], Capabilities]


@dataclass(frozen=True, slots=True)
class GroundCommands:
    """A row of the table. `title` is the word of the step of `up`.

    `prepare` describes the ground; it raises `MachineFailure` where there is nothing to run in. `stop_servers` ends
    servers other than sandboxes, which `down` always ends, and returns their number.
    """

    title: Callable[[], str]
    prepare: Callable[[Settings, Probe, Collection[str]], str]
    stop_servers: Callable[[Settings], int]


def _sandboxes(settings: Settings, probe: Probe, _take: Collection[str]) -> str:
    described = check_sandbox(settings, probe())
    belonging.bind_executor(settings)
    return described


def _pods(settings: Settings, _probe: Probe, take: Collection[str]) -> str:
    from mlp_hub.cli.doctor.cluster import describe, identify  # noqa: PLC0415 - loads the cluster's client

    described, cluster = describe(settings), identify(settings)
    if belonging.NEW_EXECUTOR not in take:
        belonging.check_cluster(settings, cluster)
    belonging.bind_executor(settings, cluster)
    return described


def _stop_pods(settings: Settings) -> int:
    from mlp_hub.cli.lifecycle.down_pods import stop_servers  # noqa: PLC0415 - loads the cluster's client

    return stop_servers(settings)


GROUNDS: Mapping[Ground, GroundCommands] = {
    Ground.SANDBOX: GroundCommands(lambda: say("sandbox"), _sandboxes, lambda _: 0),
    Ground.CLUSTER: GroundCommands(lambda: say("cluster"), _pods, _stop_pods),
}


def ranks_continue(count: int) -> CommandFailed:
    """Return the fault that this number of jobs should be suspended, but nobody ended their ranks on other machines."""
    return CommandFailed(
        says(
            "1 job should be suspended, but its ranks continue: only the service ends ranks on other machines.",
            "{n} jobs should be suspended, but their ranks continue: only the service ends ranks on other machines.",
            count,
        ),
        say("Start the hub with `up`, which ends them, then stop it with its `down JOBS=stop`."),
    )


def check_sandbox(settings: Settings, found: Capabilities) -> str:
    """Describe the sandbox in force; raise MachineFailure where there is none and that was not allowed."""
    if found.mode == "open" or (found.mode is None and not settings.runs.needs_sandbox):
        return say("NONE: users are not kept apart")
    if found.mode is None:
        lacking = [f"  {m.what}: {m.effect}. {m.remedy}" for m in found.missing]
        raise MachineFailure(
            say("This machine has no sandbox, so users and jobs could not be kept apart."),
            say(
                "Fix the problems above, or accept that all users can read and stop everything: MLP_ALLOW_NO_SANDBOX=1 mlp-hub up"
            ),
            details="\n".join(lacking),
        )
    limits = f"cgroup {found.cgroup}"
    if found.cgroup == "none":
        limits = say("no cgroups: limits are watched, not enforced")
    calls = "" if found.seccomp else say(", system calls not filtered")
    return f"bubblewrap {found.bwrap_version} ({found.mode}), {limits}{calls}"

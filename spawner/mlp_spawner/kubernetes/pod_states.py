"""Reports of a cluster on a notebook server's pod, and their text for the server's user; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlp_hub.kubernetes.kinds import Object
from mlp_language.message import NOTHING, Message, msg
from mlp_spawner.server import out_of_memory

CONTAINER = "notebook"
START = "mlp-hub/start"
"""Annotation that tells one start of a server from another, whose pod has the same name."""
_NO_IMAGE = {"ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError"}
_NO_CONTAINER = {"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}
_NOT_YET = "failed to sync "
"""Given: how a node begins to say that it has not heard of a secret or config map within its time; it asks again by itself."""
NEEDED = ("jupyterhub", "jupyterlab")
"""Given: packages that a server's image must have; `launcher` has the same."""
LACKS = 78
"""Given: exit status with which `launcher` says that one of them is missing, and its last word which."""
_NO_PROGRAM = {"StartError", "ContainerCannotRun"}
_OVER = {"Succeeded", "Failed"}
_DELETED = msg("The notebook server's pod was deleted in the cluster, not by the hub. Start it again")


@dataclass(frozen=True, slots=True)
class Exit:
    """How a container ended."""

    code: int
    reason: str
    said: str


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod as the hub keeps it. `waiting` is the reason of a container that has not started, `unplaced` why no node has it."""

    uid: str
    start: str
    image: str
    phase: str
    address: str
    running: bool
    waiting: str
    said: str
    unplaced: str
    exit: Exit | None
    reason: str  # of the pod's end, where the node or the cluster ended it
    disrupted: str  # by whom or what it is being ended, as the cluster announces
    deleted: bool  # it is being ended, because somebody asked for that

    @property
    def over(self) -> bool:
        """Whether its server has ended."""
        return self.exit is not None or self.phase in _OVER

    @property
    def unbound(self) -> bool:
        """Whether no node has it because its volume is not there yet, as in the first moments of a tenant's namespace."""
        return "persistentvolumeclaim" in self.unplaced.lower()


def pod_of(found: Object) -> Pod:
    """Read a pod."""
    about, status = found["metadata"], found.get("status", {})
    container: Mapping[str, Any] = next(
        (c for c in status.get("containerStatuses", ()) if c["name"] == CONTAINER), {}
    )
    state = container.get("state") or {}
    ended, waiting = state.get("terminated"), state.get("waiting") or {}
    conditions = {c["type"]: c for c in status.get("conditions", ())}
    placed = conditions.get("PodScheduled", {})
    disrupted = conditions.get("DisruptionTarget", {})
    return Pod(
        uid=about["uid"],
        start=(about.get("annotations") or {}).get(START, ""),
        image=next((c["image"] for c in found["spec"]["containers"] if c["name"] == CONTAINER), ""),
        phase=status.get("phase", ""),
        address=status.get("podIP", ""),
        running="running" in state,
        waiting=waiting.get("reason", ""),
        said=waiting.get("message", "") or status.get("message", ""),
        # its first sentence: the rest is about preemption, which the cluster is not asked for
        unplaced=placed.get("message", "").split(". ")[0] if placed.get("reason") == "Unschedulable" else "",
        exit=Exit(ended["exitCode"], ended.get("reason", ""), ended.get("message", "")) if ended else None,
        reason=status.get("reason", ""),
        disrupted=disrupted.get("message", "") if disrupted.get("status") == "True" else "",
        deleted="deletionTimestamp" in about,
    )


def hopeless(pod: Pod, environment: str = "") -> Message:
    """Say why a pod can never come up, of an environment where its image is that one's; nothing where it may."""
    why = pod.said or pod.waiting
    if pod.waiting in _NO_IMAGE and environment:
        return msg(
            "The image {image} of environment {name} is not available: {why}. Start the server with another environment, or delete this one and create it again, from an image that the cluster's nodes can pull",
            image=pod.image,
            name=environment,
            why=_short(why),
        )
    if pod.waiting in _NO_IMAGE:
        return msg(
            "The image {image} of the notebook server is not available: {why}. An administrator of the hub can fix that",
            image=pod.image,
            why=_short(why),
        )
    if pod.waiting in _NO_CONTAINER and not pod.said.startswith(_NOT_YET):
        return msg(
            "The notebook server's container cannot be made: {why}. An administrator of the hub can fix that",
            why=_short(why),
        )
    return NOTHING


def waits_for(pod: Pod | None) -> Message:
    """Say what a start waits for."""
    if pod is None:
        return msg("Asking the cluster for a pod")
    if pod.unbound:
        return msg("Waiting for the volume of the user's files")
    if pod.unplaced:
        return msg("Waiting for a node of the cluster with room: {why}", why=_short(pod.unplaced))
    if pod.waiting == "ErrImagePull":
        return msg("The image {image} could not be fetched; it is tried again", image=pod.image)
    if pod.running:
        return msg("Starting the server")
    return msg("Making the pod on its node")


def no_node(pod: Pod) -> Message:
    """Say that no node took a pod within the time."""
    return msg(
        "No node of the cluster has room for the notebook server: {why}. Try again later, or ask for less",
        why=_short(pod.unplaced),
    )


def not_in_time(pod: Pod | None, seconds: float, warned: str) -> Message:
    """Say that a server did not come up within the time, and how far it came."""
    return msg(
        "The notebook server did not come up within {seconds} s: {stage}. {why}",
        seconds=round(seconds),
        stage=waits_for(pod),
        why=_short(warned) or msg("Start it again"),
    )


def how_it_ended(pod: Pod | None, ram_mib: int | None) -> Message:
    """Say how a server that ran has ended; `pod` is the last that was known of it."""
    if pod is None:
        return _DELETED
    if pod.exit is not None and pod.exit.reason == "OOMKilled":
        return out_of_memory(ram_mib)
    return _ended_from_outside(pod) or _ended_by_itself(pod)


def _ended_from_outside(pod: Pod) -> Message:
    if pod.reason == "Evicted":
        return msg(
            "The notebook server was ended by its node, which ran short: {why}. Start it again",
            why=_short(pod.said),
        )
    if pod.disrupted:
        return msg(
            "The notebook server was ended by the cluster: {why}. Start it again", why=_short(pod.disrupted)
        )
    return _DELETED if pod.deleted or not pod.over else NOTHING


def _ended_by_itself(pod: Pod) -> Message:
    if pod.exit is None:
        return msg("The notebook server's pod has failed: {why}. Start it again", why=_short(pod.said))
    if pod.exit.code == 0:
        return NOTHING  # it was shut down from within
    return msg("The notebook server ended with status {code}. Start it again", code=pod.exit.code)


def why_no_start(pod: Pod | None, ram_mib: int, tail: str) -> Message:
    """Say how a server ended while it started, with the end of its output."""
    if pod is None or pod.exit is None or pod.exit.reason == "OOMKilled":
        return how_it_ended(pod, ram_mib)
    how = f"exit status {pod.exit.code}"
    if tail:
        return msg(
            "The notebook server ended while it started: {how}. Its last output: {tail}",
            how=how,
            tail=_short(tail),
        )
    return msg("The notebook server ended while it started: {how}.", how=how)


def why_no_environment(pod: Pod, environment: str, ram_mib: int, tail: str) -> Message:
    """Return the same for a server in an environment's image: the parts that it lacks, and a usable image's."""
    if pod.exit is None or pod.exit.reason == "OOMKilled" or _ended_from_outside(pod):
        return why_no_start(pod, ram_mib, tail)
    missing = tuple(name for name in NEEDED if name in pod.exit.said.split())
    if pod.exit.code == LACKS and missing:
        why = msg("it lacks {packages}", packages=missing)
    elif pod.exit.reason in _NO_PROGRAM:
        why = msg("it has no Python that starts as python ({said})", said=_short(pod.exit.said))
    elif tail:
        why = msg("it ended with status {code} and printed: {tail}", code=pod.exit.code, tail=_short(tail))
    else:
        why = msg("it ended with status {code}", code=pod.exit.code)
    return msg(
        "The image {image} of environment {name} cannot start a notebook server: {why}. Such an image needs Python 3.11 or later, JupyterHub and JupyterLab: make it from the hub's notebook image. Until then start the server with another environment; jobs can use this one",
        image=pod.image,
        name=environment,
        why=why,
    )


def exit_status(pod: Pod | None) -> int:
    """Return the status that the hub shows."""
    return 1 if pod is None or pod.exit is None else pod.exit.code


def _short(text: str) -> str:
    """Return what the cluster said as part of a sentence: one line, without its full stop."""
    return " ".join(text.split())[:600].rstrip(". ")

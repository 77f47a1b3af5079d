"""Security contexts that the Pod Security level `restricted` asks for, of pods that are nobody but their user."""

from __future__ import annotations

from typing import Any


def pod(uid: int) -> dict[str, Any]:
    """Return the context of a pod whose processes are of this user, and of the group of the same number."""
    return {
        "runAsNonRoot": True,
        "runAsUser": uid,
        "runAsGroup": uid,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container() -> dict[str, Any]:
    """Return the context of a container that gets no rights, and that writes to volumes only."""
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }

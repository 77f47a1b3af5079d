"""Errors of sandboxes."""

from __future__ import annotations

from mlp_hub.domain.errors import MLPError


class SandboxUnavailable(MLPError):  # noqa: N818 - names the condition
    """No sandbox can be made on this machine; the message names what is missing and the remedy."""
